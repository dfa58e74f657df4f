// Drawing mean rewards with a mouse, a finger or the keyboard, on a grid of columns and levels
import { byId, h } from "./dom.js";
import { seriesStyle } from "./charts.js";

const SVG = "http://www.w3.org/2000/svg";
const LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const WIDTH = 360;
const HEIGHT = 190;
const EDGE = { left: 26, right: 8, top: 10, bottom: 22 };

function svgElement(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export class Drawing {
  constructor(container, { columns, levels }) {
    this.columns = columns;
    this.levels = levels;
    this.arm = 0;
    this.column = 0;
    this.last = null;
    // At first, two arms whose means are exchanged in the middle, and a constant one between them
    const half = columns / 2;
    this.means = [
      Array.from({ length: columns }, (_, i) => (i < half ? 0.7 : 0.3)),
      Array.from({ length: columns }, (_, i) => (i < half ? 0.3 : 0.7)),
      Array.from({ length: columns }, () => 0.5),
    ].map((row) => row.map((mean) => Math.round(mean * levels)));
    this.curves = svgElement("g", {});
    this.svg = svgElement("svg", { class: "canvas-drawing", id: "drawing-canvas", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, tabindex: "0", role: "slider",
      "aria-valuemin": "0", "aria-valuemax": "1", "aria-describedby": "drawing-hint" }, ...this.gridLines(), this.curves);
    this.pens = h("div", { class: "pens", role: "radiogroup", "aria-label": "Arm to draw" });
    container.append(this.pens, this.svg, h("p", { class: "hint", id: "drawing-hint" },
      "Draw with the mouse or a finger, or with the arrow keys: left and right move in time, with Shift they copy the mean."));
    this.listen();
    this.show();
    document.documentElement.addEventListener("theme", () => this.show());
  }

  gridLines() {
    const lines = [0, 0.5, 1].flatMap((mean) => [
      svgElement("line", { class: "rule", x1: EDGE.left, x2: WIDTH - EDGE.right, y1: this.y(mean * this.levels), y2: this.y(mean * this.levels) }),
      svgElement("text", { x: EDGE.left - 6, y: this.y(mean * this.levels) + 4, "text-anchor": "end" }, String(mean)),
    ]);
    return [...lines, svgElement("text", { x: EDGE.left, y: HEIGHT - 6 }, "step 1"),
      svgElement("text", { x: WIDTH - EDGE.right, y: HEIGHT - 6, "text-anchor": "end" }, "horizon")];
  }

  x(column) {
    return EDGE.left + (column / this.columns) * (WIDTH - EDGE.left - EDGE.right);
  }

  y(level) {
    return EDGE.top + (1 - level / this.levels) * (HEIGHT - EDGE.top - EDGE.bottom);
  }

  listen() {
    this.svg.addEventListener("pointerdown", (event) => {
      this.svg.setPointerCapture(event.pointerId);
      this.last = null;
      this.draw(event);
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (this.svg.hasPointerCapture(event.pointerId)) this.draw(event);
    });
    this.svg.addEventListener("pointerup", () => this.changed());
    this.svg.addEventListener("keydown", (event) => this.key(event));
  }

  draw(event) {
    const box = this.svg.getBoundingClientRect();
    const across = ((event.clientX - box.left) / box.width) * WIDTH - EDGE.left;
    const down = ((event.clientY - box.top) / box.height) * HEIGHT - EDGE.top;
    const clamp = (value, high) => Math.min(Math.max(value, 0), high);
    const column = clamp(Math.floor((across / (WIDTH - EDGE.left - EDGE.right)) * this.columns), this.columns - 1);
    const level = clamp(Math.round((1 - down / (HEIGHT - EDGE.top - EDGE.bottom)) * this.levels), this.levels);
    const from = this.last ?? { column, level };
    const count = Math.abs(column - from.column);
    for (let i = 0; i <= count; i++) {
      const share = count ? i / count : 1;
      const here = from.column + Math.sign(column - from.column) * i;
      this.means[this.arm][here] = Math.round(from.level + (level - from.level) * share);
    }
    this.last = { column, level };
    this.column = column;
    this.show();
  }

  key(event) {
    const row = this.means[this.arm];
    const value = row[this.column];
    const large = this.levels / 10;
    const up = { ArrowUp: 1, ArrowDown: -1, PageUp: large, PageDown: -large }[event.key];
    const along = { ArrowLeft: -1, ArrowRight: 1, Home: -this.columns, End: this.columns }[event.key];
    if (up === undefined && along === undefined) return;
    event.preventDefault();
    if (up !== undefined) {
      row[this.column] = Math.min(Math.max(value + up, 0), this.levels);
    } else {
      const to = Math.min(Math.max(this.column + along, 0), this.columns - 1);
      if (event.shiftKey) row.fill(value, Math.min(this.column, to), Math.max(this.column, to) + 1);
      this.column = to;
    }
    this.show();
    this.changed();
  }

  changed() {
    this.svg.dispatchEvent(new Event("change", { bubbles: true }));
  }

  resize(arms) {
    while (this.means.length < arms) this.means.push(new Array(this.columns).fill(Math.round(this.levels / 2)));
    this.means.length = arms;
    this.arm = Math.min(this.arm, arms - 1);
    this.show();
  }

  show() {
    if (this.pens.children.length !== this.means.length) {
      this.pens.replaceChildren(...this.means.map((_, arm) => h("label", {},
        h("input", { type: "radio", name: "pen", value: arm, checked: arm === this.arm, onchange: (event) => {
          event.stopPropagation();
          this.arm = arm;
          this.show();
        } }), `Arm ${arm + 1}`)));
    }
    const order = [...this.means.keys()].sort((a, b) => (a === this.arm) - (b === this.arm));
    this.curves.replaceChildren(...order.map((arm) => this.curve(arm)), ...this.cursor());
    const level = this.means[this.arm][this.column] / this.levels;
    this.svg.setAttribute("aria-label", `Mean reward of arm ${this.arm + 1}`);
    this.svg.setAttribute("aria-valuenow", String(level));
    this.svg.setAttribute("aria-valuetext", `${level.toFixed(2)} in segment ${this.column + 1} of ${this.columns}`);
  }

  curve(arm) {
    const points = this.means[arm].flatMap((level, i) => [`${this.x(i)},${this.y(level)}`, `${this.x(i + 1)},${this.y(level)}`]);
    const { colour } = seriesStyle(arm);
    return svgElement("polyline", { class: arm === this.arm ? "curve selected" : "curve", points: points.join(" "), stroke: colour });
  }

  cursor() {
    const x = (this.x(this.column) + this.x(this.column + 1)) / 2;
    const y = this.y(this.means[this.arm][this.column]);
    return [svgElement("line", { class: "cursor-line", x1: x, x2: x, y1: EDGE.top, y2: HEIGHT - EDGE.bottom }),
      svgElement("circle", { class: "cursor", cx: x, cy: y, r: 5, stroke: seriesStyle(this.arm).colour })];
  }

  encode() {
    return this.means.map((row) => row.map((level) => LETTERS[level]).join("")).join(".");
  }

  /** Show what `encode` wrote; an invalid text changes nothing, since the server reports it. */
  decode(text) {
    const rows = text.split(".").map((row) => [...row].map((letter) => LETTERS.indexOf(letter)));
    const valid = rows.every((row) => row.length === this.columns && row.every((level) => level >= 0 && level <= this.levels));
    if (!valid || rows.length < 2) return;
    this.means = rows;
    byId("arms").value = rows.length;
    this.arm = 0;
    this.pens.replaceChildren();
    this.show();
  }
}
