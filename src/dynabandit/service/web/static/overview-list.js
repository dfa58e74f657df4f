// Which cards of the overview are shown, and in which order: the search and the sort, which the address remembers
import { byId } from "./dom.js";

const WAIT_MS = 250; // after the last key, before the service searches all bandits

const search = byId("search");
const sort = byId("sort");
const given = new URLSearchParams(location.search);
search.value = given.get("search") ?? "";
if ([...sort.options].some(({ value }) => value === given.get("sort"))) sort.value = given.get("sort");

/** What is searched for. */
export const searched = () => search.value.trim();

/** What a card is sorted by, the largest first; latest activity by the minute, so that cards do not move all the time. */
const KEYS = {
  decisions: ({ decisions }) => decisions,
  rate: ({ rate }) => rate ?? -Infinity,
  activity: ({ wall }) => Math.floor(wall / 60),
};

/** Return those of the `{ name, data }` that are searched for, in order; `data` is null for a log that cannot be read. */
export function arranged(cards) {
  const text = searched().toLowerCase();
  const key = KEYS[sort.value] ?? (() => 0);
  const keyOf = ({ data }) => (data === null ? -Infinity : key(data));
  const byName = (a, b) => (a.name < b.name ? -1 : 1);
  return cards.filter(({ name }) => name.toLowerCase().includes(text))
    .map((card) => [keyOf(card), card])
    .sort(([a, one], [b, other]) => (a === b ? byName(one, other) : b - a))
    .map(([, card]) => card);
}

/** Call `onChange` at each change, and `onSearch` when the text to search for has changed and nobody types. */
export function onFilter(onChange, onSearch) {
  let timer = 0;
  const changed = () => {
    const address = new URL(location.href);
    for (const [name, value, usual] of [["search", searched(), ""], ["sort", sort.value, "name"]]) {
      if (value === usual) address.searchParams.delete(name);
      else address.searchParams.set(name, value);
    }
    history.replaceState(null, "", address);
    onChange();
  };
  sort.addEventListener("change", changed);
  search.addEventListener("input", () => {
    changed();
    clearTimeout(timer);
    timer = setTimeout(onSearch, WAIT_MS);
  });
}

/** Say how many bandits were found. */
export function showFound(found) {
  byId("found").textContent = searched() === "" ? "" : found === 0 ? "No bandit has such a name." : `${found} found`;
}
