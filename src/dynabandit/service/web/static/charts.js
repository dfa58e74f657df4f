// Charts: Plotly in the colours of the page, with a table of the same numbers for people who cannot see them
import { h, saveCsv } from "./dom.js";
import { isDark } from "./header.js";

const PLOTLY_OPTIONS = { displayModeBar: false, responsive: true };
// Colours of Okabe and Ito and of Tol, with a lighter set for dark pages. Series 10 to 19 have the same colours, dashed
const LIGHT = ["#0072b2", "#d55e00", "#00785a", "#aa3377", "#8a6d00", "#4477aa", "#ee6677", "#5b5bd6", "#6b6b6b", "#117733"];
const DARK = ["#56b4e9", "#ff9e5e", "#3ddbaa", "#e58fc4", "#e8c547", "#8fb8e8", "#ff97a3", "#a9a6ff", "#b8b8b8", "#7bd389"];
// Policies have colours of their own where a page shows arms, too
const POLICIES = ["#111827", "#c2185b", "#7c3aed", "#0e7c86", "#a16207", "#64748b"];
const POLICIES_DARK = ["#f3f4f6", "#ff7eb6", "#b69cff", "#4fd1d9", "#e0b45c", "#a3b1c6"];
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash"];

export const OTHERS = 8; // the grey series

let loading = null;

/** Load Plotly once; the page is painted before it has loaded. */
export function plotly() {
  loading ??= new Promise((resolve, reject) => {
    const script = h("script", { src: document.documentElement.dataset.plotly });
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => reject(new Error("Plotly's script could not be loaded"));
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

/** The colour and dash of series number `index`. */
export function seriesStyle(index) {
  const colours = isDark() ? DARK : LIGHT;
  return { colour: colours[index % colours.length], dash: DASHES[Math.floor(index / colours.length) % DASHES.length] };
}

/** The colour of policy number `index` on a page that shows arms, too. */
export function policyColour(index) {
  return (isDark() ? POLICIES_DARK : POLICIES)[index % POLICIES.length];
}

/** Escape a text for Plotly, which interprets some tags and entities. */
export function plain(text) {
  return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

function faded(hex, opacity) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  return `rgba(${r}, ${g}, ${b}, ${opacity})`;
}

/** A curve. `steps` draws it as a step function, `form` is the d3 format of the value shown on hover. */
export function line(name, x, y, index, { form = ".3~f", width = 2, dash, colour, steps = false, ...more } = {}) {
  const style = seriesStyle(index);
  return {
    type: "scatter", mode: "lines", name: plain(name), legendgroup: String(index), x, y, connectgaps: false,
    line: { color: colour ?? style.colour, dash: dash ?? style.dash, width, shape: steps ? "hv" : "linear" },
    hovertemplate: `%{y:${form}}<extra>%{fullData.name}</extra>`, ...more,
  };
}

/** The band around a curve: two traces that must come before the curve. */
export function band(name, x, low, high, index, { opacity = 0.16, colour } = {}) {
  const common = {
    type: "scatter", mode: "lines", x, legendgroup: String(index), showlegend: false, hoverinfo: "skip",
    name: plain(name), line: { width: 0 },
  };
  return [{ ...common, y: low }, { ...common, y: high, fill: "tonexty", fillcolor: faded(colour ?? seriesStyle(index).colour, opacity) }];
}

/** One layer of a stacked area chart. */
export function layer(name, x, y, index, { form = ".1%", group = "all" } = {}) {
  const { colour } = seriesStyle(index);
  return {
    type: "scatter", mode: "lines", stackgroup: group, name: plain(name), legendgroup: String(index), x, y,
    line: { width: 0.5, color: colour }, fillcolor: faded(colour, 0.72),
    hovertemplate: `%{y:${form}}<extra>%{fullData.name}</extra>`,
  };
}

/** Markers on a curve, such as detected changes. */
export function marks(name, x, y, index, text, { symbol = "triangle-down", size = 11 } = {}) {
  return {
    type: "scatter", mode: "markers", name: plain(name), legendgroup: String(index), showlegend: false, x, y,
    text: text.map(plain), hovertemplate: "%{text}<extra></extra>",
    marker: { symbol, size, color: seriesStyle(index).colour, line: { width: 1.5, color: paint("--card") } },
  };
}

/** A layout in the colours of the page; `x` and `y` are axis titles, `legend` may set its position, `more` overrides. */
export function layout({ x = "", y = "", percent = false, legend = true, ...more } = {}) {
  const ink = paint("--soft");
  const grid = paint("--line");
  const axis = { gridcolor: grid, linecolor: grid, zerolinecolor: grid, tickcolor: grid, automargin: true, fixedrange: true };
  const font = { family: "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", size: 12, color: ink };
  const { xaxis, yaxis, ...rest } = more;
  return {
    font, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "x unified", showlegend: Boolean(legend),
    margin: { l: 48, r: 24, t: 8, b: 40 }, // on the right, room for half of the last tick label
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { ...font, color: paint("--ink") }, ...legend },
    hoverlabel: { bgcolor: paint("--card"), bordercolor: grid, font: { ...font, color: paint("--ink") } },
    xaxis: { ...axis, title: { text: x, standoff: 8 }, separatethousands: true, ...xaxis },
    yaxis: { ...axis, title: { text: y, standoff: 8 }, ...(percent ? { tickformat: ".0%" } : {}), ...yaxis },
    ...rest,
  };
}

/**
 * A chart in an element. `make` returns `{ data, layout, table, note }`: `table` is `{ caption, head, rows }` with the same
 * numbers, shown on request, and if wanted `csv`, a function that returns `{ rows, name }` of a file with all of them, and
 * `note` is a text for an empty chart. Call `draw()` when the numbers have changed; a change
 * of the theme redraws the chart.
 */
export class Chart {
  constructor(element, make) {
    this.make = make;
    this.canvas = h("div", { class: "canvas", "aria-hidden": "true" });
    this.note = h("span");
    this.notice = h("p", { class: "note", "aria-hidden": "true", hidden: true }, this.note);
    this.body = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers of the chart" });
    this.download = h("button", { type: "button", class: "small", hidden: true, onclick: () => this.saveNumbers() }, "Download as CSV");
    this.details = h("details", { class: "numbers" }, h("summary", {}, "Show the numbers"), this.download, this.body);
    this.details.addEventListener("toggle", () => this.fillTable());
    element.replaceChildren(h("div", { class: "plot" }, this.canvas, this.notice), this.details);
    document.documentElement.addEventListener("theme", () => this.draw());
    this.drawing = null; // a promise during a drawing
    this.isOutdated = false;
  }

  /** Draw the chart; a call during a drawing is done afterwards. It ends when the chart shows what it was called for. */
  draw() {
    this.isOutdated = true;
    this.drawing ??= this.drawWhileOutdated();
    return this.drawing;
  }

  async drawWhileOutdated() {
    try {
      const { react } = await plotly();
      while (this.isOutdated) {
        this.isOutdated = false;
        this.content = this.make();
        this.note.textContent = this.content.note ?? "";
        this.notice.hidden = !this.content.note;
        await react(this.canvas, this.content.data, this.content.layout, PLOTLY_OPTIONS);
        this.canvas.dataset.drawn = String(Number(this.canvas.dataset.drawn ?? 0) + 1);
        this.fillTable();
      }
    } finally {
      this.drawing = null;
    }
  }

  /** Offer the numbers as a file. */
  saveNumbers() {
    const { rows, name } = this.content.table.csv();
    saveCsv(rows, name);
  }

  /** Fill the table while it is open. */
  fillTable() {
    if (!this.details.open || !this.content?.table) return;
    this.download.hidden = !this.content.table.csv;
    const { caption, head, rows } = this.content.table;
    this.body.setAttribute("aria-label", caption);
    this.body.replaceChildren(
      h("table", {},
        h("caption", {}, caption),
        h("thead", {}, h("tr", {}, head.map((cell) => h("th", { scope: "col" }, cell)))),
        h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, i) => h(i ? "td" : "th", i ? {} : { scope: "row" }, cell)))))));
  }
}
