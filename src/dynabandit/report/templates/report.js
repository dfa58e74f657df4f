"use strict";
(() => {
  const specification = (chart) => JSON.parse(document.getElementById(`${chart.id}-data`).textContent);
  const rendered = new Set();
  const hidden = new Map(); // figure -> what each legend entry's visibility is
  const dark = matchMedia("(prefers-color-scheme: dark)");

  const ink = () => getComputedStyle(document.body).color;

  // A horizontal legend takes its height from the plot; give it rows of its own.
  const height = (spec, width) => {
    const longest = Math.max(0, ...spec.names.map((name) => name.length));
    const perRow = Math.max(1, Math.floor((width - 20) / (50 + 7 * longest)));
    return spec.height + (spec.names.length ? 26 + 20 * Math.ceil(spec.names.length / perRow) : 0);
  };

  const groups = (chart) => new Map(chart.data.map((trace) => [trace.legendgroup, trace.visible ?? true]));

  const apply = (chart, visible) => {
    const indices = [];
    const values = [];
    chart.data.forEach((trace, index) => {
      const wanted = visible.get(trace.legendgroup);
      if (wanted !== undefined && wanted !== (trace.visible ?? true)) {
        indices.push(index);
        values.push(wanted);
      }
    });
    if (indices.length) Plotly.restyle(chart, { visible: values }, indices);
  };

  // Hiding a policy in one chart hides it in all charts of the figure.
  const follow = (chart) => {
    const figure = chart.closest(".figure");
    chart.on("plotly_restyle", ([change]) => {
      if (!("visible" in change)) return;
      const visible = groups(chart);
      hidden.set(figure, visible);
      for (const other of figure.querySelectorAll(".chart")) {
        if (other !== chart && rendered.has(other)) apply(other, visible);
      }
    });
    if (hidden.has(figure)) apply(chart, hidden.get(figure));
  };

  const render = (chart) => {
    if (rendered.has(chart)) return;
    rendered.add(chart);
    const spec = specification(chart);
    const size = height(spec, chart.clientWidth);
    chart.style.minHeight = `${size}px`;
    if (chart.clientWidth < 500) {
      for (const axis of Object.keys(spec.layout)) if (axis.startsWith("xaxis")) spec.layout[axis].nticks = 4;
    }
    const layout = { ...spec.layout, height: size, font: { color: ink(), family: getComputedStyle(document.body).fontFamily, size: 12 } };
    Plotly.newPlot(chart, spec.data, layout, { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d"] })
      .then(() => follow(chart));
  };

  const charts = document.querySelectorAll(".chart");
  for (const chart of charts) chart.style.minHeight = `${height(specification(chart), chart.clientWidth)}px`;

  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        observer.unobserve(entry.target);
        render(entry.target);
      }
    }
  }, { rootMargin: "800px" });
  for (const chart of charts) observer.observe(chart);

  dark.addEventListener("change", () => {
    for (const chart of rendered) Plotly.relayout(chart, { "font.color": ink() });
  });

  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const one of closed) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of closed) one.open = false;
  });
})();
