// Code that decides with this bandit and rewards the decision, in several languages, to be copied
import { url } from "./api.js";
import { byId, copy } from "./dom.js";
import { open } from "./forms.js";

const KEY = "dyna_…"; // to be replaced by a key of the reader

/** A value of JSON as Python writes it. */
function python(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${python(one)}`).join(", ")}}`;
  return JSON.stringify(value);
}

/** A text in single quotes of a shell. */
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

const LANGUAGES = {
  python({ name, origin, key, options }) {
    const given = Object.entries(options).map(([option, value]) => `, ${option}=${python(value)}`).join("");
    return `import dynabandit

with dynabandit.Client(${python(origin)}${key ? `, key=${python(key)}` : ""}) as client:
    decision = client.decide(${python(name)}${given})
    print("show", decision.arm)
    client.reward(decision.decision, 1)  # later, when the outcome is known
`;
  },

  shell({ name, origin, key, options }) {
    const headers = `-H 'Content-Type: application/json'${key ? ` -H ${quoted(`Authorization: Bearer ${key}`)}` : ""}`;
    return `answer=$(curl -s -X POST ${quoted(origin + url("v1", "bandits", name, "decisions"))} \\
  ${headers} \\
  -d ${quoted(JSON.stringify(options))})
printf '%s\\n' "$answer"
decision=$(printf '%s' "$answer" | sed 's/.*"decision":"\\([^"]*\\)".*/\\1/')
# later, when the outcome is known
curl -s -X PUT "${origin}/v1/decisions/$decision/reward" \\
  ${headers} \\
  -d '{"reward": 1}'
`;
  },

  javascript({ name, origin, key, options }) {
    const given = Object.keys(options).length ? `, ${JSON.stringify(options)}` : "";
    return `import { Client } from ${JSON.stringify(`${origin}/client/dynabandit.js`)};

const client = new Client(${JSON.stringify(origin)}${key ? `, { key: ${JSON.stringify(key)} }` : ""});
const { decision, arm } = await client.decide(${JSON.stringify(name)}${given});
console.log("show", arm);
await client.reward(decision, 1); // later, when the outcome is known
`;
  },
};

/** The options of a decision that this bandit uses. */
function decisionOptions({ example_context: context, sticky_for, holdout }) {
  return { ...(context && { context }), ...((sticky_for !== null || holdout !== null) && { unit: "user-17" }) };
}

/** Set up the dialog with the code; `currentData` returns the data that the page shows. */
export function setUpSnippets(name, currentData) {
  const show = () => {
    const language = byId("code-form").elements.language.value;
    const key = "needsKeys" in document.documentElement.dataset ? KEY : null;
    byId("code").textContent = LANGUAGES[language]({ name, origin: location.origin, key, options: decisionOptions(currentData()) });
    byId("code-javascript-hint").hidden = language !== "javascript";
  };
  byId("code-button").onclick = () => {
    show();
    open(byId("code-dialog"));
  };
  byId("code-form").addEventListener("change", show);
  byId("code-form").addEventListener("submit", (event) => event.preventDefault());
  byId("code-copy").onclick = () => copy(byId("code").textContent, byId("code-copy"));
}
