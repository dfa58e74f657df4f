"use strict";
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const ink = () => getComputedStyle(document.body).color;
  const specifications = new Map(); // chart -> its data, layout, height, legend entries and groups
  const rendered = new Set();

  const DASHES = { dash: "6 3", dot: "2 2", dashdot: "6 2 2 2", longdash: "10 3" };
  const MARKERS = { // around (0, 0), in a square of 8
    circle: "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0", square: "M-3.5-3.5h7v7h-7z", diamond: "M0-4.5 4.5 0 0 4.5-4.5 0z",
    "triangle-up": "M0-4 4 3.5h-8z", "triangle-down": "M0 4-4-3.5h8z", x: "M-3.5-3.5 3.5 3.5M-3.5 3.5 3.5-3.5",
    cross: "M-4 0h8M0-4v8", pentagon: "M0-4 4-1 2.5 4h-5L-4-1z", hexagon: "M-2-4h4l2 4-2 4h-4l-2-4z",
    star: "M0-4.5 1.2-1.3 4.5-1.3 1.8.7 2.8 4 0 2-2.8 4-1.8.7-4.5-1.3-1.2-1.3z",
  };

  const swatch = (entry, markers) => {
    const dash = DASHES[entry.dash] ? ` stroke-dasharray="${DASHES[entry.dash]}"` : "";
    const fill = entry.filled ? entry.colour : "var(--paper)";
    const marker = markers ? `<path d="${MARKERS[entry.marker]}" transform="translate(15 6)" fill="${fill}"></path>` : "";
    return `<svg width="30" height="12" aria-hidden="true" stroke="${entry.colour}" stroke-width="1.8">` +
      `<path d="M0 6h30"${dash}></path>${marker}</svg>`;
  };

  // One per figure: which curves its charts show, and buttons to change that
  class Figure {
    constructor(element) {
      this.charts = [...element.querySelectorAll(".chart")];
      this.buttons = [...element.querySelectorAll(".shown button")];
      for (const chart of this.charts) {
        specifications.set(chart, JSON.parse(document.getElementById(`${chart.id}-data`).textContent));
      }
      this.names = new Set(this.charts.flatMap((chart) => specifications.get(chart).data.map((trace) => trace.legendgroup)));
      this.grouped = new Set(this.buttons.flatMap((button) => this.group(button)));
      for (const button of this.buttons) button.addEventListener("click", () => this.choose(button));
      this.choose(this.buttons[0]);
    }

    group(button) {
      return JSON.parse(button.dataset.names ?? "[]");
    }

    // Show a group of curves, or all of them, and everything that is in no group
    choose(button) {
      for (const other of this.buttons) other.setAttribute("aria-pressed", other === button);
      const group = new Set(button ? this.group(button) : []);
      const listed = [...this.names].filter((name) => !group.size || group.has(name) || !this.grouped.has(name));
      this.listed = new Set(listed);
      this.shown = new Set(listed);
      for (const chart of this.charts) {
        this.list(chart);
        this.apply(chart);
      }
    }

    // The legend of a chart: a curve that is hidden in one chart is hidden in all charts of the figure
    list(chart) {
      const specification = specifications.get(chart);
      const legend = chart.parentElement.querySelector(".legend");
      legend.replaceChildren();
      for (const entry of specification.entries.filter((one) => this.listed.has(one.name))) {
        const button = document.createElement("button");
        button.type = "button";
        button.innerHTML = swatch(entry, specification.data.some((trace) => trace.marker && trace.legendgroup === entry.name));
        button.append(entry.name);
        button.dataset.name = entry.name;
        button.setAttribute("aria-pressed", "true");
        button.addEventListener("click", () => this.toggle(entry.name));
        legend.append(button);
      }
    }

    toggle(name) {
      if (!this.shown.delete(name)) this.shown.add(name);
      for (const chart of this.charts) {
        for (const button of chart.parentElement.querySelectorAll(".legend button")) {
          button.setAttribute("aria-pressed", this.shown.has(button.dataset.name));
        }
        this.apply(chart);
      }
    }

    visible(chart) {
      return specifications.get(chart).data.map((trace) => this.shown.has(trace.legendgroup));
    }

    apply(chart) {
      if (rendered.has(chart)) Plotly.restyle(chart, { visible: this.visible(chart) });
    }

    render(chart) {
      if (rendered.has(chart)) return;
      rendered.add(chart);
      const { data, layout, height } = specifications.get(chart);
      const narrow = chart.clientWidth < 500;
      if (narrow) for (const axis of Object.keys(layout)) if (axis.startsWith("xaxis")) layout[axis].nticks = 4;
      const visible = this.visible(chart);
      const font = { color: ink(), family: getComputedStyle(document.body).fontFamily, size: 12 };
      const bar = { displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d"], ...(narrow && { displayModeBar: false }) };
      Plotly.newPlot(chart, data.map((trace, index) => ({ ...trace, visible: visible[index] })), { ...layout, height, font }, { responsive: true, ...bar });
    }
  }

  const figures = new Map();
  for (const element of document.querySelectorAll(".figure")) {
    const figure = new Figure(element);
    for (const chart of figure.charts) figures.set(chart, figure);
  }

  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        observer.unobserve(entry.target);
        figures.get(entry.target).render(entry.target);
      }
    }
  }, { rootMargin: "800px" });
  for (const chart of figures.keys()) observer.observe(chart);

  dark.addEventListener("change", () => {
    for (const chart of rendered) Plotly.relayout(chart, { "font.color": ink() });
  });

  // The link to the section that is being read
  const links = new Map([...document.querySelectorAll(".contents a")].map((link) => [link.hash.slice(1), link]));
  const sections = [...document.querySelectorAll("main > section")];
  const contents = document.querySelector(".contents");
  let current = null;
  const mark = () => {
    const passed = sections.filter((section) => section.getBoundingClientRect().top < 150);
    const link = links.get((passed.at(-1) ?? sections[0])?.id);
    if (link === current) return;
    current?.removeAttribute("aria-current");
    current = link;
    link?.setAttribute("aria-current", "true");
    if (link && contents.scrollWidth > contents.clientWidth) contents.scrollLeft = link.offsetLeft - contents.clientWidth / 3;
  };
  addEventListener("scroll", mark, { passive: true });
  mark();

  // A click on a heading sorts the table by this column, a second one in the opposite order
  const value = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.value ?? cell.textContent.replace(/\u2212/g, "-").replace(/,/g, "");
    const number = parseFloat(text);
    return Number.isNaN(number) ? text.trim() : number;
  };
  const compare = (one, two) => (typeof one === typeof two ? (one < two ? -1 : one > two ? 1 : 0) : typeof one === "number" ? -1 : 1);
  for (const table of document.querySelectorAll(".sortable")) {
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const sign = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
        for (const other of headings) other.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
        const rows = [...table.tBodies[0].rows].sort((one, two) => sign * compare(value(one, column), value(two, column)));
        table.tBodies[0].append(...rows);
      });
    });
  }

  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open]):not(.screen-only)")];
    for (const one of closed) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of closed) one.open = false;
  });
})();
