// A client of dynabandit's decision service, for browsers and for Node 18 or newer.
// Every call is sent again if no answer came or the service was busy. That is safe: a decision carries a key that gives
// the same decision again, and a reward counts once however often it is sent. dynabandit.d.ts explains all methods.

const RETRIED = [408, 429, 502, 503, 504];
const NOT_FINAL = [401, 403, ...RETRIED]; // with another key or later, the same call may succeed
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
  #hurry = () => this.#pauses.forEach((end) => end());
  #flushLater = () => void this.flush();

  constructor(url, { key, timeout = 10, tries = 6, storage = pageStorage() } = {}) {
    this.#url = baseUrl(url);
    if (!(timeout > 0 && timeout < Infinity)) throw new TypeError(`timeout must be above 0 seconds, got ${timeout}`);
    if (!(Number.isInteger(tries) && tries > 0)) {
      throw new TypeError(`tries must be a whole number of at least 1, got ${tries}`);
    }
    this.#headers = { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) };
    this.#timeout = timeout;
    this.#tries = tries;
    this.#storage = storage;
    this.#prefix = `dynabandit ${this.#url} `;
    this.#keyId = /^dyna_(\w+?)_/.exec(key)?.[1]; // not secret
    globalThis.addEventListener?.("pagehide", this.#hurry);
    globalThis.addEventListener?.("online", this.#flushLater);
    this.#flushLater();
  }

  async decide(name, { context, unit, among, rank, key } = {}) {
    const [decision] = await this.#decide(name, { context, unit, among, rank }, key);
    return decision;
  }

  decideMany(name, count, { context, key } = {}) {
    return this.#decide(name, { count, context }, key);
  }

  async #decide(name, body, key = randomToken()) {
    const call = { method: "POST", path: bandit(name, "decisions"), body: JSON.stringify(body) };
    return (await this.#send(call, { "Idempotency-Key": key })).decisions;
  }

  async reward(decision, reward, { name, arm } = {}) {
    return this.#keepAndSend("PUT", ofDecision(name, decision, "reward"), { reward: finite("reward", reward), arm });
  }

  async rewardMany(rewards, { name } = {}) {
    const path = name === undefined ? "/v1/rewards" : bandit(name, "rewards");
    const given = Array.from(rewards, (one) => ({
      decision: id(one.decision),
      reward: finite("reward", one.reward),
      arm: one.arm,
    }));
    return (await this.#keepAndSend("POST", path, { rewards: given })).results;
  }

  async metrics(decision, metrics, { name } = {}) {
    const values = Object.entries(metrics).map(([metric, value]) => [metric, finite(metric, value)]);
    return this.#keepAndSend("PUT", ofDecision(name, decision, "metrics"), { metrics: Object.fromEntries(values) });
  }

  async flush() {
    this.#flushing ??= this.#flush().finally(() => (this.#flushing = null));
    return this.#flushing;
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
    globalThis.removeEventListener?.("pagehide", this.#hurry);
    globalThis.removeEventListener?.("online", this.#flushLater);
  }

  #keepAndSend(method, path, content) {
    const place = this.#prefix + randomToken();
    const call = { method, path, body: JSON.stringify(content), key: this.#keyId, time: Date.now(), place };
    this.#store(call);
    this.#stored(); // removes the oldest one if there are too many
    return this.#deliver(call);
  }

  #store(call) {
    try {
      this.#storage?.setItem(call.place, JSON.stringify(call));
    } catch {
      // the storage is full: the call is sent all the same
    }
  }

  /** Send a stored call, and forget what of it is counted or refused for good. */
  async #deliver(call) {
    try {
      const answer = await this.#send(call);
      const isOpen = (_, index) => !isFinal(answer.results[index].status, call);
      const left = answer.results ? JSON.parse(call.body).rewards.filter(isOpen) : [];
      if (left.length) this.#store({ ...call, body: JSON.stringify({ rewards: left }) });
      else this.#storage?.removeItem(call.place);
      return answer;
    } catch (error) {
      if (error.isFinal) this.#storage?.removeItem(call.place);
      throw error;
    }
  }

  async #send(call, headers) {
    const asked = `${call.method} ${call.path}`;
    for (let attempt = 1; ; attempt++) {
      const { status, text, failure, retryAfter } = await this.#fetch(call, headers);
      const answer = read(text);
      if (status >= 200 && status < 300) {
        if (answer?.decision ?? answer?.decisions ?? answer?.results) return answer;
        throw new ServiceError(status, `the answer to ${asked} is not dynabandit's: ${text.slice(0, 200)}`);
      }
      const tries = `in ${attempt} tries`;
      const isLast = attempt === this.#tries;
      if (status === 0 && isLast) {
        const why = failure.cause?.message || failure.message;
        throw new ServiceError(0, `no answer to ${asked} from ${this.#url} ${tries}: ${why}`, { cause: failure });
      }
      if (status !== 0 && (isLast || !RETRIED.includes(status))) {
        const problem = answer?.problem ?? text.slice(0, 200);
        throw new ServiceError(status, RETRIED.includes(status) ? `${problem} (${tries})` : problem, {
          isFinal: Boolean(answer?.problem) && isFinal(status, call),
        });
      }
      const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt - 1)) * (1 + Math.random());
      await this.#pause(Math.max(pause, Math.min(retryAfter, this.#timeout)));
    }
  }

  async #fetch({ method, path, body }, headers) {
    try {
      const answer = await fetch(this.#url + path, {
        method,
        body,
        headers: { ...this.#headers, ...headers },
        keepalive: headers === undefined && body.length < KEEPALIVE_BYTES, // the call goes on when its page is closed
        signal: AbortSignal.timeout(1000 * this.#timeout),
      });
      const retryAfter = Number(answer.headers.get("Retry-After")) || 0;
      return { status: answer.status, text: await answer.text(), retryAfter };
    } catch (failure) {
      return { status: 0, failure, retryAfter: 0 };
    }
  }

  /** Wait, but not longer than the page is open. */
  #pause(seconds) {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.#pauses.delete(end);
        resolve();
      };
      const timer = setTimeout(end, 1000 * seconds);
      this.#pauses.add(end);
    });
  }
}

/** Whether a status of the service is its last word. A key may not know the decisions of another one. */
function isFinal(status, { isForeign }) {
  return status < 500 && !NOT_FINAL.includes(status) && !(status === 404 && isForeign);
}

function baseUrl(url) {
  try {
    const { origin, pathname, protocol } = new URL(url, globalThis.location?.href);
    if (/^https?:$/.test(protocol)) return origin + pathname.replace(/\/+$/, "");
  } catch {
    // the message below
  }
  throw new TypeError(`url must be like https://decisions.example.com, got ${url}`);
}

function pageStorage() {
  try {
    return globalThis.document ? globalThis.localStorage : null;
  } catch {
    return null; // the page may not store anything
  }
}

function bandit(name, ...parts) {
  return `/v1/bandits/${[name, ...parts].map(encodeURIComponent).join("/")}`;
}

function ofDecision(name, decision, what) {
  if (name !== undefined) return bandit(name, "decisions", id(decision), what);
  return `/v1/decisions/${encodeURIComponent(id(decision))}/${what}`;
}

function id(decision) {
  if (typeof decision === "string") return decision;
  throw new TypeError("decision must be the id of a decision, its field `decision`");
}

function finite(what, value) {
  const number = typeof value === "boolean" ? Number(value) : value;
  if (Number.isFinite(number)) return number;
  throw new TypeError(`${what} must be a number, got ${value}`);
}

function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function randomToken() {
  const bytes = globalThis.crypto?.getRandomValues(new Uint8Array(16)); // Node 18 has no global crypto
  return Array.from(bytes ?? Array(16), (byte) => ((byte ?? Math.random() * 256) | 256).toString(16).slice(1)).join("");
}
