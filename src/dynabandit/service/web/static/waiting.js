// What a form says while the service works: whether it compiles the policy, and for how long it has been working
import { call } from "./api.js";
import { byId, h } from "./dom.js";

const QUIET_MS = 500; // most calls are answered sooner

/** Return the result of `work()`, and say in the element `id` meanwhile that the service works on a policy. */
export async function whileWaiting(id, policy, work) {
  const element = byId(id);
  const started = performance.now();
  const text = h("span", {}, "");
  const seconds = h("span", { "aria-hidden": "true" }); // else a screen reader would read every second
  let message = "The service is working…";
  const show = () => {
    if (text.textContent !== message) text.textContent = message;
    seconds.textContent = ` ${Math.round((performance.now() - started) / 1000)} s`;
    if (element.childElementCount === 0) element.replaceChildren(text, seconds);
  };
  call("GET", `/pages/compiled?policy=${encodeURIComponent(policy)}`).then(({ compiled }) => {
    if (!compiled) message = `The service compiles ${policy}, which takes some seconds the first time…`;
  }).catch(() => {});
  const timer = setInterval(show, QUIET_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    element.replaceChildren();
  }
}
