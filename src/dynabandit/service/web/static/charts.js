// Charts: Plotly in the colours of the page, and a table of the same numbers for those who cannot see them
import { h } from "./dom.js";
import { isDark } from "./frame.js";

const SHORT = { displayModeBar: false, responsive: true };
// Okabe and Ito's colours and Tol's, a lighter set for dark pages; dashes repeat slower than colours
const LIGHT = ["#0072b2", "#d55e00", "#00785a", "#aa3377", "#8a6d00", "#4477aa", "#ee6677", "#5b5bd6", "#6b6b6b", "#117733"];
const DARK = ["#56b4e9", "#ff9e5e", "#3ddbaa", "#e58fc4", "#e8c547", "#8fb8e8", "#ff97a3", "#a9a6ff", "#b8b8b8", "#7bd389"];
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash"];

let loading = null;

/** Plotly, loaded once; a page paints before it is there. */
export function plotly() {
  loading ??= new Promise((resolve, reject) => {
    const script = h("script", { src: document.documentElement.dataset.plotly });
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => reject(new Error("Plotly's script did not load"));
    document.head.append(script);
  });
  return loading;
}

/** A colour of the stylesheet, such as `paint("--ink")`, as the page shows it now. */
export function paint(name) {
  const probe = h("span", { hidden: true });
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/** The look of series number `index`. */
export function look(index) {
  const colours = isDark() ? DARK : LIGHT;
  return { colour: colours[index % colours.length], dash: DASHES[Math.floor(index / colours.length) % DASHES.length] };
}

/** A text as Plotly shows it letter by letter: it reads some tags and entities otherwise. */
export function plain(text) {
  return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

function faded(hex, opacity) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  return `rgba(${r}, ${g}, ${b}, ${opacity})`;
}

/** A curve. `steps` draws it as stairs, `form` is a d3 format of the value shown on hover. */
export function line(name, x, y, index, { form = ".3~f", width = 2, dash, colour, steps = false, ...more } = {}) {
  const style = look(index);
  return {
    type: "scatter", mode: "lines", name: plain(name), legendgroup: String(index), x, y, connectgaps: false,
    line: { color: colour ?? style.colour, dash: dash ?? style.dash, width, shape: steps ? "hv" : "linear" },
    hovertemplate: `%{y:${form}}<extra>%{fullData.name}</extra>`, ...more,
  };
}

/** The band around a curve: two traces, to be put before the curve itself. */
export function band(name, x, low, high, index, { opacity = 0.16, colour } = {}) {
  const common = {
    type: "scatter", mode: "lines", x, legendgroup: String(index), showlegend: false, hoverinfo: "skip",
    name: plain(name), line: { width: 0 },
  };
  return [{ ...common, y: low }, { ...common, y: high, fill: "tonexty", fillcolor: faded(colour ?? look(index).colour, opacity) }];
}

/** One layer of areas that lie on each other. */
export function layer(name, x, y, index, { form = ".1%", group = "all" } = {}) {
  const { colour } = look(index);
  return {
    type: "scatter", mode: "lines", stackgroup: group, name: plain(name), legendgroup: String(index), x, y,
    line: { width: 0.5, color: colour }, fillcolor: faded(colour, 0.72),
    hovertemplate: `%{y:${form}}<extra>%{fullData.name}</extra>`,
  };
}

/** Marks on a curve, such as changes that were detected. */
export function marks(name, x, y, index, text, { symbol = "triangle-down", size = 11 } = {}) {
  return {
    type: "scatter", mode: "markers", name: plain(name), legendgroup: String(index), showlegend: false, x, y,
    text: text.map(plain), hovertemplate: "%{text}<extra></extra>",
    marker: { symbol, size, color: look(index).colour, line: { width: 1.5, color: paint("--card") } },
  };
}

/** A layout in the page's colours; `x` and `y` title the axes, `legend` may say where it is, `more` goes over it. */
export function layout({ x = "", y = "", percent = false, legend = true, ...more } = {}) {
  const ink = paint("--soft");
  const grid = paint("--line");
  const axis = { gridcolor: grid, linecolor: grid, zerolinecolor: grid, tickcolor: grid, automargin: true, fixedrange: true };
  const font = { family: "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", size: 12, color: ink };
  const { xaxis, yaxis, ...rest } = more;
  return {
    font, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "x unified", showlegend: Boolean(legend),
    margin: { l: 48, r: 24, t: 8, b: 40 }, // at the right there is room for half of the last number
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { ...font, color: paint("--ink") }, ...legend },
    hoverlabel: { bgcolor: paint("--card"), bordercolor: grid, font: { ...font, color: paint("--ink") } },
    xaxis: { ...axis, title: { text: x, standoff: 8 }, separatethousands: true, ...xaxis },
    yaxis: { ...axis, title: { text: y, standoff: 8 }, ...(percent ? { tickformat: ".0%" } : {}), ...yaxis },
    ...rest,
  };
}

/**
 * A chart in an element. `make` returns `{ data, layout, table, note }`, where `table` is `{ caption, head, rows }`: the
 * same numbers in words, shown on request. A `note` stands in a chart that has nothing to show yet. Call `draw()` when the numbers have changed; a change of the colours
 * draws by itself.
 */
export class Chart {
  constructor(place, make) {
    this.make = make;
    this.canvas = h("div", { class: "canvas", "aria-hidden": "true" });
    this.note = h("span");
    this.notice = h("p", { class: "note", "aria-hidden": "true", hidden: true }, this.note);
    this.body = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of the chart" });
    this.details = h("details", { class: "numbers" }, h("summary", {}, "Show the numbers"), this.body);
    this.details.addEventListener("toggle", () => this.tabulate());
    place.replaceChildren(h("div", { class: "plot" }, this.canvas, this.notice), this.details);
    document.documentElement.addEventListener("theme", () => this.draw());
    this.drawing = false;
    this.again = false;
  }

  async draw() {
    if (this.drawing) {
      this.again = true;
      return;
    }
    this.drawing = true;
    try {
      const { react } = await plotly();
      do {
        this.again = false;
        this.now = this.make();
        this.note.textContent = this.now.note ?? "";
        this.notice.hidden = !this.now.note;
        await react(this.canvas, this.now.data, this.now.layout, SHORT);
        this.canvas.dataset.drawn = String(Number(this.canvas.dataset.drawn ?? 0) + 1);
        this.tabulate();
      } while (this.again);
    } finally {
      this.drawing = false;
    }
  }

  tabulate() {
    if (!this.details.open || !this.now?.table) return;
    const { caption, head, rows } = this.now.table;
    this.body.setAttribute("aria-label", caption);
    this.body.replaceChildren(
      h("table", {},
        h("caption", {}, caption),
        h("thead", {}, h("tr", {}, head.map((cell) => h("th", { scope: "col" }, cell)))),
        h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, i) => h(i ? "td" : "th", i ? {} : { scope: "row" }, cell)))))));
  }
}
