/** The value of each feature of a context; null if it is missing. */
export type Context = Record<string, FeatureValue | number[] | Record<string, FeatureValue>>;
export type FeatureValue = boolean | number | string | null;

/** An arm of a ranking; `propensity` is its probability among the arms that the places before it left. */
export interface RankedArm {
  arm: string;
  propensity: number | null;
}

/** One decision: the `arm` to play, and the id, `decision`, to send its reward to. */
export interface Decision {
  decision: string;
  arm: string;
  step: number;
  /** The probability with which the arm was chosen, null if it is not known. */
  propensity: number | null;
  /** Whether it was made before, for the same unit. */
  repeated: boolean;
  /** Whether the unit is in the holdout. */
  holdout: boolean;
  /** The arms in order, if a ranking was asked for; the first one is the arm to play. */
  ranking: RankedArm[] | null;
}

/** The reward that counts for a decision. */
export interface Rewarded {
  decision: string;
  reward: number;
  arm?: string;
}

/** A reward and its decision; `arm` is the arm of its ranking that was taken, by default the first one. */
export interface GivenReward {
  decision: string;
  reward: number | boolean;
  arm?: string;
}

/** The result of one of several rewards; `status` is that of a call with this reward alone. */
export interface RewardResult {
  decision: string;
  status: number;
  problem?: string;
}

/** The metrics that count for a decision. */
export interface CountedMetrics {
  decision: string;
  metrics: Record<string, number>;
}

export interface ClientOptions {
  /** An API key. Whoever sees the page can read it: use one with the role `page`, a namespace and a rate limit. */
  key?: string;
  /** Seconds to wait for an answer; 10 by default. */
  timeout?: number;
  /** How often a call is tried; 6 by default. */
  tries?: number;
  /** Where rewards and metrics are kept until the service has them; in browsers `localStorage`, unless it is null. */
  storage?: Pick<Storage, "length" | "key" | "getItem" | "setItem" | "removeItem"> | null;
}

export interface DecideOptions {
  context?: Context;
  /** Whom the decision is for, such as a user; use a pseudonym. With a key of the role `page`, use `signedUnit`. */
  unit?: string;
  /** The unit with the signature of your server, as `sign_unit` of the Python package returns it. */
  signedUnit?: string;
  /** The arms to choose from. */
  among?: string[];
  /** How many arms the ranking of the decision has. */
  rank?: number;
  /** The same key gives the same decision; by default a random one. */
  key?: string;
}

/** A call that failed. */
export class ServiceError extends Error {
  constructor(status: number, problem: string, options?: { cause?: unknown; isFinal?: boolean });
  /** The status of the answer, or 0 if none came. */
  readonly status: number;
  readonly problem: string;
  /** Whether the service, not something before it, refused the call for good: it would refuse it again. */
  readonly isFinal: boolean;
}

/** A client of the decision service. Calls are sent again until they are answered, and count once. */
export class Client {
  constructor(url: string, options?: ClientOptions);
  /** Make a decision. */
  decide(name: string, options?: DecideOptions): Promise<Decision>;
  /** Make several decisions in the same context. */
  decideMany(name: string, count: number, options?: { context?: Context; key?: string }): Promise<Decision[]>;
  /** Send the reward of a decision: `name` is its bandit, for load balancers; `arm` the arm of its ranking taken. */
  reward(decision: string, reward: number | boolean, options?: { name?: string; arm?: string }): Promise<Rewarded>;
  /** Send several rewards; each has its own status. */
  rewardMany(rewards: Iterable<GivenReward>, options?: { name?: string }): Promise<RewardResult[]>;
  /** Send metrics of a decision, for which its bandit has guardrails. */
  metrics(
    decision: string,
    metrics: Record<string, number | boolean>,
    options?: { name?: string },
  ): Promise<CountedMetrics>;
  /** Send again what is stored, because the service could not be reached; returns how much is left. */
  flush(): Promise<number>;
  /** End the client: it no longer listens to events of its page. */
  close(): void;
}
