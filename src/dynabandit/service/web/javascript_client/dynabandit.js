// A client of dynabandit's decision service, for browsers and Node 18 or newer; dynabandit.d.ts explains its methods.
// Calls are sent again if no answer came or the service was busy, and count once: decisions have an idempotency key.

const RETRIED = [0, 408, 429, 502, 503, 504]; // 0: no answer
const NOT_FINAL = [401, ...RETRIED]; // later or with another key, it may succeed
const FIRST_PAUSE = 0.05; // seconds; doubled at each try, plus up to as much again at random
const LONGEST_PAUSE = 2;
const MOST_STORED = 1000; // calls
const LONGEST_STORED = 30 * 24 * 3600_000; // milliseconds
const KEEPALIVE_BYTES = 16_000; // browsers allow 64 KiB for all calls that may outlive their page

export class ServiceError extends Error {
  constructor(status, problem, { isFinal = false, ...options } = {}) {
    super(status ? `${status}: ${problem}` : problem, options);
    this.name = "ServiceError";
    this.status = status;
    this.problem = problem;
    this.isFinal = isFinal;
  }
}

export class Client {
  #url;
  #headers;
  #timeout;
  #tries;
  #storage;
  #prefix;
  #keyId;
  #pauses = new Set();
  #flushing = null;
  #closing = new AbortController();

  constructor(url, { key, timeout = 10, tries = 6, storage = pageStorage() } = {}) {
    this.#url = baseUrl(url);
    check(timeout > 0 && timeout < Infinity, `timeout must be above 0 seconds, got ${timeout}`);
    check(Number.isInteger(tries) && tries > 0, `tries must be a whole number of at least 1, got ${tries}`);
    this.#headers = { "Content-Type": "application/json" };
    if (key) this.#headers.Authorization = `Bearer ${printable(key.trim())}`;
    this.#timeout = timeout;
    this.#tries = tries;
    this.#storage = storage;
    this.#prefix = `dynabandit ${this.#url} `;
    this.#keyId = /^dyna_(\w+?)_/.exec(key)?.[1]; // not secret
    const { signal } = this.#closing;
    globalThis.addEventListener?.("pagehide", () => this.#pauses.forEach((end) => end()), { signal });
    globalThis.addEventListener?.("online", () => this.flush(), { signal });
    this.flush();
  }

  async decide(name, { context, unit, signedUnit, among, rank, key } = {}) {
    return (await this.#decide(name, { context, unit, signed_unit: signedUnit, among, rank }, key))[0];
  }

  decideMany(name, count, { context, key } = {}) {
    return this.#decide(name, { count, context }, key);
  }

  async #decide(name, body, key = randomToken()) {
    const headers = { "Idempotency-Key": printable(key) };
    const call = { method: "POST", path: bandit(name, "decisions"), body: JSON.stringify(body), headers };
    return (await this.#send(call)).decisions;
  }

  async reward(decision, reward, { name, arm } = {}) {
    return this.#submit("PUT", ofDecision(name, decision, "reward"), { reward: finite("reward", reward), arm });
  }

  async rewardMany(rewards, { name } = {}) {
    const path = name === undefined ? "/v1/rewards" : bandit(name, "rewards");
    const checked = ({ decision, reward, arm }) => ({ decision: id(decision), reward: finite("reward", reward), arm });
    return (await this.#submit("POST", path, { rewards: Array.from(rewards, checked) })).results;
  }

  async metrics(decision, metrics, { name } = {}) {
    const values = Object.entries(metrics).map(([metric, value]) => [metric, finite(metric, value)]);
    return this.#submit("PUT", ofDecision(name, decision, "metrics"), { metrics: Object.fromEntries(values) });
  }

  flush() {
    return (this.#flushing ??= this.#flush().finally(() => (this.#flushing = null)));
  }

  async #flush() {
    for (const call of this.#stored().sort((a, b) => a.isForeign - b.isForeign)) {
      try {
        await this.#deliver(call);
      } catch (error) {
        if (!error.isFinal) break; // the next call would fail, too
      }
    }
    return this.#stored().length;
  }

  /** The stored calls, the oldest first; those of clients with another key are foreign. */
  #stored() {
    const storage = this.#storage;
    const places = Array.from({ length: storage?.length ?? 0 }, (_, index) => storage.key(index));
    const calls = places
      .filter((place) => place.startsWith(this.#prefix))
      .map((place) => ({ key: this.#keyId, time: Date.now(), ...read(storage.getItem(place)), place }))
      .map((call) => ({ ...call, isForeign: call.key !== this.#keyId }))
      .sort((a, b) => a.time - b.time);
    const isKept = ({ body, time }, index) =>
      body && time > Date.now() - LONGEST_STORED && index >= calls.length - MOST_STORED;
    calls.forEach((call, index) => isKept(call, index) || storage.removeItem(call.place));
    return calls.filter(isKept);
  }

  close() {
    this.#closing.abort();
  }

  #submit(method, path, content) {
    const place = this.#prefix + randomToken();
    const call = { method, path, body: JSON.stringify(content), key: this.#keyId, time: Date.now(), place };
    this.#store(call);
    return this.#deliver(call);
  }

  #store(call) {
    try {
      this.#storage?.setItem(call.place, JSON.stringify(call));
      this.#stored(); // removes the oldest one if there are too many
    } catch {
      // the storage is full: the call is sent all the same
    }
  }

  /** Send a stored call, and forget what of it is counted or refused for good. */
  async #deliver(call) {
    try {
      const keepalive = call.body.length < KEEPALIVE_BYTES;
      const answer = await this.#send({ ...call, keepalive });
      const isOpen = (_, index) => !isFinal(answer.results[index]?.status, call);
      const left = answer.results ? JSON.parse(call.body).rewards.filter(isOpen) : [];
      if (left.length) this.#store({ ...call, body: JSON.stringify({ rewards: left }) });
      else this.#storage?.removeItem(call.place);
      return answer;
    } catch (error) {
      if (error.isFinal) this.#storage?.removeItem(call.place);
      throw error;
    }
  }

  async #send(call) {
    for (let attempt = 1; ; attempt++) {
      const { status, text, retryAfter = 0, cause } = await this.#fetch(call);
      const answer = read(text);
      const isSuccess = status >= 200 && status < 300;
      if (isSuccess && (answer?.decision ?? answer?.decisions ?? answer?.results)) return answer;
      const isRetried = RETRIED.includes(status);
      if (!isRetried || attempt === this.#tries) {
        const asked = `${call.method} ${call.path}`;
        const tries = `in ${attempt} tries`;
        let problem = answer?.problem ?? text.slice(0, 200);
        if (isSuccess) problem = `the answer to ${asked} is not dynabandit's: ${problem}`;
        else if (!status) problem = `no answer to ${asked} from ${this.#url} ${tries}: ${problem}`;
        else if (isRetried) problem += ` (${tries})`;
        const isRefusal = !isSuccess && Boolean(answer?.problem);
        throw new ServiceError(status, problem, { isFinal: isRefusal && isFinal(status, call), cause });
      }
      const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt - 1)) * (1 + Math.random());
      await this.#pause(Math.max(pause, Math.min(retryAfter, this.#timeout)));
    }
  }

  async #fetch({ method, path, body, headers, keepalive }) {
    try {
      const answer = await fetch(this.#url + path, {
        method,
        body,
        headers: { ...this.#headers, ...headers },
        keepalive,
        signal: AbortSignal.timeout(1000 * this.#timeout),
      });
      const retryAfter = Number(answer.headers.get("Retry-After")) || 0;
      return { status: answer.status, text: await answer.text(), retryAfter };
    } catch (cause) {
      return { status: 0, text: cause.cause?.message || cause.message, cause };
    }
  }

  /** Wait, but not longer than the page is open. */
  #pause(seconds) {
    return new Promise((resolve) => {
      this.#pauses.add(resolve);
      setTimeout(() => {
        this.#pauses.delete(resolve);
        resolve();
      }, 1000 * seconds);
    });
  }
}

/** Whether a status is the service's last word; another key may be allowed more. */
function isFinal(status, { isForeign }) {
  return status < 500 && !NOT_FINAL.includes(status) && !(isForeign && [403, 404].includes(status));
}

function check(isValid, message) {
  if (!isValid) throw new TypeError(message);
}

function baseUrl(url) {
  const parsed = orNull(() => new URL(url, globalThis.location?.href));
  check(/^https?:$/.test(parsed?.protocol), `url must be like https://decisions.example.com, got ${url}`);
  return parsed.origin + parsed.pathname.replace(/\/+$/, "");
}

function pageStorage() {
  return orNull(() => (globalThis.document ? globalThis.localStorage : null)); // not every page may store something
}

function bandit(name, ...parts) {
  check(name && typeof name === "string", `name must be the name of a bandit, got ${name}`);
  return `/v1/bandits/${[name, ...parts].map(encodeURIComponent).join("/")}`;
}

function ofDecision(name, decision, what) {
  if (name !== undefined) return bandit(name, "decisions", id(decision), what);
  return `/v1/decisions/${encodeURIComponent(id(decision))}/${what}`;
}

function id(decision) {
  check(typeof decision === "string", "decision must be the id of a decision, its field `decision`");
  return decision;
}

/** Check what will be in a header: `fetch` refuses other characters, as if no answer came. */
function printable(key) {
  check(/^[ -~]{1,255}$/.test(key), "key must have 1 to 255 printable ASCII characters");
  return key;
}

function finite(what, value) {
  const number = typeof value === "boolean" ? Number(value) : value;
  check(Number.isFinite(number), `${what} must be a number, got ${value}`);
  return number;
}

function read(text) {
  return orNull(() => JSON.parse(text));
}

function orNull(compute) {
  try {
    return compute();
  } catch {
    return null;
  }
}

function randomToken() {
  const bytes = globalThis.crypto?.getRandomValues(new Uint8Array(16)); // Node 18 has no global crypto
  return Array.from(bytes ?? Array(16), (byte) => ((byte ?? Math.random() * 256) | 256).toString(16).slice(1)).join("");
}
