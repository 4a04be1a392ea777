// Draws the charts of a page. The data of a chart is the CSV behind its link, and nothing else.
(() => {
  "use strict";
  // The colours of the style, which differ in light and dark; then the same with dashes.
  const COLOURS = d3.range(7).map((index) => `var(--colour-${index})`);
  const DASHES = [null, "5 3", "2 2", "8 3 2 3"];
  const colour = (index) => COLOURS[index % COLOURS.length];
  const dash = (index) => DASHES[Math.floor(index / COLOURS.length) % DASHES.length];
  const unique = (values) => [...new Set(values)];
  // Four digits, thousands grouped, never an exponent.
  const short = (value) => value.toLocaleString("en", { maximumSignificantDigits: 4 });
  const ONE = { minimumFractionDigits: 1, maximumFractionDigits: 1 };
  const WHOLE = { maximumFractionDigits: 0 };
  const STYLE = { fontSize: "11px" };

  function element(name, parent, text, kind) {
    const made = document.createElement(name);
    if (text) made.textContent = text;
    if (kind) made.className = kind;
    parent.append(made);
    return made;
  }

  function legend(parent, names, bars) {
    const list = element("div", parent, "", "legend");
    names.forEach((name, index) => {
      const entry = element("span", list);
      const sample = d3.select(entry).append("svg").attr("width", 22).attr("height", 10);
      sample.append("line").attr("x2", 22).attr("y1", 5).attr("y2", 5).attr("stroke", colour(index))
        .attr("stroke-width", bars ? 10 : 2.5).attr("stroke-dasharray", bars ? null : dash(index));
      entry.append(name);
    });
  }

  // An axis of numbers. Intervals are symmetric and may reach below zero where no value can be: on
  // a logarithmic axis they are cut off.
  function axis(kind, values, ends, label) {
    const [least, most] = d3.extent([...values, ...ends]);
    const [smallest, greatest] = d3.extent(values);
    const tickFormat = (value) => short(value);
    if (kind === "fit" && smallest > 0 && greatest / smallest > 20) {
      return { type: "log", domain: [smallest / 1.3, most], clamp: true, ticks: 4, grid: true,
        label: label && `${label} (logarithmic)`,
        tickFormat: (value) => (/^[125]/.test(value.toExponential()) ? short(value) : "") };
    }
    const room = kind === "tight" ? (most - least || Math.abs(most) || 1) * 0.08 : 0;
    const domain = kind === "tight" ? [least - room, most + room] : [Math.min(0, least), most || 1];
    return { domain, clamp: true, nice: kind !== "tight", ticks: 5, label, grid: true, tickFormat };
  }

  const told = (row) => [
    [row.series, row.label].filter(Boolean).join(", "),
    `${row.at}: ${row.value === null ? "" : short(row.value)}${row.low === null ? "" : ` (${short(row.low)} to ${short(row.high)})`}`,
    row.more,
  ].filter(Boolean).join("\n");

  // What the browser says of a mark that is not followed by a tip.
  const still = (row) => (row.cell ? null : told(row));
  // The value of each seed, where it is wanted.
  const seeds = (rows) => rows.flatMap((row) => (row.seeds ?? []).map((seed) => ({ ...row, value: seed })));
  // Where a mark leads: to the details of its request, if the page has them.
  function link(row) {
    const id = [row.label, row.at].map((text) => `${text}`.toLowerCase().split(/[^a-z0-9]+/).filter(Boolean).join("-"))
      .find((id) => id.startsWith("request-") && document.getElementById(id));
    return id && `#${id}`;
  }
  const filled = (row) => (row.mark === "ring" ? "var(--paper)" : row.tint);

  // Values upwards: lines, points and steps.
  function upright(rows, about, value, width) {
    const zoomed = zooms.get(about.at);
    const named = about.atScale === "names";
    const x = named ? { type: "point", domain: unique(rows.map((row) => row.at)), label: about.at }
      : { ...axis(about.atScale, rows.map((row) => row.at), [], about.at), grid: false, ...(zoomed && { domain: zoomed, nice: false }) };
    const joined = about.form !== "points";
    const bare = (row) => row.mark === "none";
    const series = d3.groups(rows, (row) => row.series);
    const line = (rows, more) => Plot.line(rows, { x: "at", y: "value", stroke: rows[0].tint,
      strokeWidth: 1.8, strokeDasharray: rows[0].dash, ...more });
    return {
      style: STYLE, width, height: Math.min(320, 120 + width * 0.35), marginLeft: 56, marginBottom: 36, marginRight: 16,
      x, y: value,
      marks: [
        Plot.ruleY(about.bound ? [+about.bound] : [], { stroke: "var(--ink)", strokeDasharray: "3 2" }),
        ...(joined ? series.map(([, own]) => line(own)) : []),
        ...(joined ? [] : series.filter(([, own]) => own.every(bare)).map(([, own]) => line(own, { curve: "step-after" }))),
        ...(joined ? [] : [Plot.line(rows.filter((row) => row.label && !bare(row)),
          { x: "at", y: "value", z: (row) => row.series + row.label, stroke: "tint", strokeOpacity: 0.5 })]),
        Plot.link(rows.filter((row) => row.low !== null), { x: "at", y1: "low", y2: "high", stroke: "tint", strokeOpacity: 0.6 }),
        Plot.dot(rows.filter((row) => !bare(row)), { x: "at", y: "value", r: (row) => (link(row) ? 5 : 3), fill: filled, stroke: "tint", title: still, href: link }),
        Plot.dot(seeds(rows), { x: "at", y: "value", r: 1.5, fill: "tint", fillOpacity: 0.6 }),
        Plot.tip(rows.filter((row) => bare(row) || row.cell), Plot.pointer({ x: "at", y: "value", title: told })),
      ],
    };
  }

  // Values to the right: a row for each place, its name above it, so that long names need no margin.
  function flat(rows, about, value, width) {
    const places = unique(rows.map((row) => row.at));
    const bars = about.form === "bars";
    const several = unique(rows.map((row) => row.series)).length;
    const tall = bars ? 38 : 22 + 10 * several;
    const total = (at) => d3.sum(rows.filter((row) => row.at === at), (row) => row.value);
    const shifted = (rows) => d3.groups(rows, (row) => row.place).map(([place, own]) => [own, 10 * place + 21 - tall / 2]);
    const known = rows.filter((row) => row.value !== null);
    return {
      style: { ...STYLE, color: "var(--ink)" }, width, height: 40 + tall * places.length,
      marginLeft: 8, marginRight: 16, marginTop: 4, marginBottom: 34,
      y: { type: "band", axis: null, domain: places, padding: 0 },
      x: value,
      marks: [
        Plot.text(places, { y: (at) => at, text: (at) => (bars ? `${at}: ${short(total(at))}` : at), frameAnchor: "left", textAnchor: "start",
          dy: 7 - tall / 2, lineWidth: (width - 24) / 11, textOverflow: "ellipsis", fill: "var(--ink)", href: (at) => link({ at }) }),
        Plot.ruleX(about.bound ? [+about.bound] : [], { stroke: "var(--ink)", strokeDasharray: "3 2" }),
        ...(bars ? [Plot.barX(rows, Plot.stackX({ x: "value", y: "at", order: null, fill: "tint", insetTop: 19, insetBottom: 5, insetRight: 0.5, title: told, href: link }))] : []),
        ...(bars ? [] : shifted(rows.filter((row) => row.low !== null)).map(([own, dy]) => Plot.link(own,
          { x1: "low", x2: "high", y: "at", dy, stroke: "tint", strokeWidth: 2.5, strokeOpacity: 0.55 }))),
        ...(bars ? [] : shifted(seeds(rows)).map(([own, dy]) => Plot.dot(own, { x: "value", y: "at", dy, r: 1.5, fill: "var(--ink)" }))),
        ...(bars ? [] : shifted(known.filter((row) => row.mark === "tick")).map(([own, dy]) => Plot.dot(own,
          { x: "value", y: "at", dy, symbol: "times", r: 4, stroke: "var(--ink)", title: told }))),
        ...(bars ? [] : shifted(known.filter((row) => !["tick", "none"].includes(row.mark))).map(([own, dy]) => Plot.dot(own,
          { x: "value", y: "at", dy, r: 4, fill: filled, stroke: "tint", title: still }))),
        Plot.tip(rows.filter((row) => row.cell), Plot.pointerY({ x: "value", y: "at", title: told })),
      ],
    };
  }

  // A field for each place and series: the darker, the greater its value. The colours are those of svg.rs.
  function fields(rows, about, value, width) {
    const [places, names] = [unique(rows.map((row) => row.at)), unique(rows.map((row) => row.series))];
    const shade = d3.scaleLog([1, 5], ["rgb(226,239,247)", "rgb(240,140,80)"]).clamp(true);
    const digits = (value) => value.toFixed(value < 1.995 ? 2 : value < 9.95 ? 1 : 0);
    const left = Math.min(width * 0.35, 12 + 6.5 * d3.max(places, (at) => at.length));
    const narrow = names.length * 70 > width - left;
    const words = (row) => (row.value !== null ? digits(row.value) : narrow ? "✕" : row.label);
    const place = { x: "series", y: "at" };
    return {
      style: { ...STYLE, color: "var(--ink)" }, width, height: (narrow ? 74 : 44) + 24 * places.length, marginLeft: left, marginRight: 2,
      marginTop: 4, marginBottom: narrow ? 70 : 40, padding: 0.05,
      x: { type: "band", domain: names, axis: "bottom", label: about.value, tickSize: 0, labelOffset: narrow ? 66 : 36, tickRotate: narrow ? -35 : 0 },
      y: { type: "band", domain: places, label: null, tickSize: 0 },
      marks: [
        Plot.cell(rows, { ...place, fill: (row) => (row.value === null ? "#c3c7cc" : shade(row.value)), title: told }),
        Plot.text(rows, { ...place, text: words, fill: "#1f2328", pointerEvents: "none" }),
      ],
    };
  }

  function show(figure) {
    const about = figure.dataset;
    const csv = decodeURIComponent(figure.querySelector("a[download]").href.replace(/^[^,]*,/, ""));
    // By rows, because the parser that makes objects writes code, which the page forbids.
    const [columns, ...lines] = d3.csvParseRows(csv);
    const number = (text) => (text ? +text : null);
    const zoomed = zooms.get(about.at);
    const rows = lines.map((line) => {
      const { panel = "", series = "", at, value, low, high, mark = "", label = "" } =
        Object.fromEntries(columns.map((column, index) => [column, line[index]]));
      return { panel, series, at: about.atScale === "names" ? at : +at, value: number(value),
        low: number(low), high: number(high), mark, label };
    });
    const names = unique(rows.map((row) => row.series));
    for (const row of rows) {
      row.place = names.indexOf(row.series);
      row.tint = colour(row.place);
      row.dash = dash(row.place);
    }
    const canvas = figure.querySelector(".canvas");
    const caption = figure.querySelector("figcaption");
    caption.querySelector("button")?.remove();
    canvas.replaceChildren();
    if (zoomed) element("button", caption, "Show all").onclick = () => zoom(about.at, null);
    if (about.form !== "grid" && (names.length > 1 || names[0])) legend(canvas, names, about.form === "bars");
    draw(canvas, zoomed ? rows.filter((row) => row.at >= zoomed[0] && row.at <= zoomed[1]) : rows, about);
  }

  // What is shown of the axes of numbers, by their labels; all of an axis that is not here.
  const zooms = new Map();
  function zoom(label, ends) {
    if (ends) zooms.set(label, ends);
    else zooms.delete(label);
    all();
  }
  function brush(plot, label) {
    const x = plot.scale("x");
    const y = plot.scale("y");
    const layer = d3.select(plot).insert("g", "g").on("dblclick", () => zoom(label, null));
    layer.call(d3.brushX().touchable(false).extent([[x.range[0], y.range[1]], [x.range[1], y.range[0]]])
      .on("end", ({ selection }) => selection && zoom(label, selection.map(x.invert))));
  }

  // Draws what has its colours, a small chart for each panel.
  function draw(canvas, rows, about) {
    if (!rows.length) return void element("p", canvas, "There is nothing here.");
    const bars = about.form === "bars";
    const panels = unique(rows.map((row) => row.panel));
    const grid = element("div", canvas, "", panels.length > 1 ? "panels" : "panels one");
    const boxes = panels.map((panel) => {
      const box = element("div", grid, "", "panel");
      if (panel) element("h4", box, panel);
      return box;
    });
    const width = Math.max(220, Math.min(760, Math.floor(boxes[0].clientWidth)));
    const values = bars ? d3.rollups(rows, (own) => d3.sum(own, (row) => row.value), (row) => `${row.panel} ${row.at}`).map(([, sum]) => sum)
      : rows.flatMap((row) => (about.spans ? [row.low, row.value, row.high] : [row.value])).filter((value) => value !== null);
    // An interval that is far wider than the values ends at the edge.
    const reach = about.valueScale === "tight" ? Infinity : 2 * d3.max(values);
    const ends = rows.flatMap((row) => [row.low, row.high, ...(row.seeds ?? [])]).filter((end) => end !== null)
      .map((end) => Math.min(end, reach)).concat(about.bound ? [+about.bound] : []);
    const scale = axis(about.valueScale, values, ends, about.value);
    for (const row of rows.filter((row) => row.low !== null && scale.type)) row.low = Math.max(row.low, scale.domain[0]);
    const layout = { rows: flat, bars: flat, grid: fields }[about.form] ?? upright;
    boxes.forEach((box, index) => {
      const own = rows.filter((row) => row.panel === panels[index]);
      const plot = Plot.plot(layout(own, about, scale, width));
      box.append(plot);
      if (layout === upright && about.atScale !== "names") brush(plot, about.at);
    });
  }

  // Where readers choose: any metric of any class, for any of the cells, from the values of each seed.
  function explorer(home) {
    const { factors, levels, classes, load, seeds, student, digits, metrics, over_time: overTime } =
      JSON.parse(document.getElementById("runs").textContent);
    if (!metrics.length) return void home.remove();
    const own = Math.max(factors.indexOf("arm"), 0);
    const others = d3.range(factors.length).filter((index) => index !== own);
    const swept = others.filter((index) => factors[index] !== "workload").at(-1);
    const last = (path) => path.split(".").at(-1);
    const classOf = (metric) => classes.find((name) => metric.name.startsWith(`${name}.`)) ?? "";
    const bare = (metric) => metric.name.slice(classOf(metric) ? classOf(metric).length + 1 : 0);
    const find = (name, group) => metrics.find((metric) => bare(metric) === name && classOf(metric) === group);
    const cells = load.map((state, number) => {
      const at = [];
      levels.reduceRight((rest, names, index) => ((at[index] = rest % names.length), Math.floor(rest / names.length)), number);
      return { at, state };
    });
    // The values of each cell, one a seed or one a part of the run. Each is a logarithm of three digits; 0 is no value, and 1 is 0.
    function read(metric, each = seeds) {
      const values = metric.values.match(/.../g).map((text) => {
        const code = [...text].reduce((sum, letter) => 64 * sum + digits.indexOf(letter), 0);
        return code < 2 ? [null, 0][code] : Math.exp(metric.least + (code - 2) * metric.step) * (metric.share ? 100 : 1);
      });
      return d3.range(0, values.length, each).map((first) => values.slice(first, first + each));
    }

    const bar = element("div", home, "", "choices");
    function menu(label, choices) {
      const select = element("select", element("label", bar, label));
      for (const [text, value = text] of choices) element("option", select, text).value = value;
      select.onchange = update;
      return select;
    }
    const names = unique([...metrics].sort((one, other) => other.asked - one.asked).map(bare));
    const metricMenu = menu("Metric", names.map((name) => [name]));
    const classMenu = menu("Class", [["all requests", ""], ...unique(metrics.map(classOf)).filter(Boolean).map((name) => [name])]);
    const menus = others.map((index) => {
      const made = menu(factors[index] === "workload" ? "Workload" : last(factors[index]), [["all", -1], ...levels[index].map((name, level) => [name, level])]);
      made.value = index === swept || factors[index] === "workload" ? -1 : 0;
      return made;
    });
    const baseMenu = menu("Compared with", levels[own].map((name, level) => [name, level]));
    const timeMenu = overTime && menu("Over time", [["no", ""], ...overTime.series.map(({ name }) => [name])]);
    const chips = element("div", home, "", "chips");
    chips.setAttribute("role", "group");
    chips.setAttribute("aria-label", factors[own]);
    function chip(text, tint, on) {
      const made = element("button", chips, text);
      made.style.setProperty("--tint", tint);
      made.setAttribute("aria-pressed", on);
      made.onclick = () => (made.setAttribute("aria-pressed", made.ariaPressed !== "true"), update());
      return made;
    }
    const arms = levels[own].map((name, level) => chip(name, colour(level), true));
    arms.forEach((made, level) => (made.style.borderStyle = dash(level) ? "dashed" : "solid"));
    const each = chip("every seed", "var(--faint)", false);
    const spans = chip("p50, p90, p99", "var(--faint)", false);
    const note = element("p", home, "", "faint");
    const canvas = element("div", home, "", "canvas");
    const scroll = element("div", home, "", "scroll tall");
    note.setAttribute("role", "status");

    // The mean with its 95 % interval, of logarithms where only ratios mean something.
    function spread(values, ratio) {
      const log = ratio && values.every((value) => value > 0);
      const [there, back] = log ? [Math.log, Math.exp] : [(value) => value, (value) => value];
      const known = values.map(there);
      const mean = d3.mean(known);
      const half = known.length > 1 ? student[known.length - 2] * d3.deviation(known) / Math.sqrt(known.length) : null;
      const [low, high] = half === null ? [null, null] : [back(mean - half), back(mean + half)];
      return { mean: back(mean), low, high };
    }

    // How a cell differs from the one with the other arm, seed by seed.
    function compared(metric, cell, base) {
      const other = metric.runs[cells.findIndex(({ at }) => at.every((level, index) => level === (index === own ? base : cell.at[index])))];
      const pairs = d3.zip(metric.runs[cell.number], other).filter(([one, two]) => one !== null && two !== null);
      if (!pairs.length) return null;
      const log = metric.ratio && pairs.flat().every((value) => value > 0);
      const { mean, low, high } = spread(pairs.map(([one, two]) => (log ? one / two : one - two)), log);
      const shown = (value) => {
        const number = log ? 100 * (value - 1) : value;
        return (number > 0 ? "+" : "") + number.toLocaleString("en", number > -100 && number < 100 ? ONE : WHOLE);
      };
      const sure = low !== null && (log ? low > 1 || high < 1 : low > 0 || high < 0);
      const tone = !sure || metric.less === null ? "" : (mean < (log ? 1 : 0)) === metric.less ? "confirmed" : "refuted";
      const unit = log ? " %" : metric.share ? " points" : metric.unit && ` ${metric.unit}`;
      return { mean, tone, text: shown(mean) + (low === null ? "" : ` (${shown(low)} to ${shown(high)})`) + unit };
    }

    let sorted = { column: -1, down: false };
    function table(metric, rows, base) {
      const columns = [...others.map((index) => [last(factors[index]), (row) => levels[index][row.cell.at[index]], (row) => row.cell.at[index]]),
        [factors[own], (row) => levels[own][row.cell.at[own]], (row) => row.cell.at[own]],
        [metric.title, (row) => short(row.value), (row) => row.value],
        ["95 % interval", (row) => (row.low === null ? "-" : `${short(row.low)} to ${short(row.high)}`), (row) => row.low],
        [`against ${levels[own][base]}`, (row) => row.against?.text ?? "-", (row) => row.against?.mean ?? 0],
        ["load", (row) => row.cell.state, (row) => row.cell.state]];
      const by = columns[sorted.column]?.[2];
      if (by) rows = d3.sort(rows, (one, other) => (sorted.down ? d3.descending : d3.ascending)(by(one), by(other)));
      const made = element("table", scroll);
      const head = element("tr", element("thead", made));
      const kind = (column) => (column > others.length && column < columns.length - 1 ? "n" : "");
      columns.forEach(([name], column) => {
        const cell = element("th", head, "", kind(column));
        if (column === sorted.column) cell.ariaSort = sorted.down ? "descending" : "ascending";
        element("button", cell, name).onclick = () => {
          sorted = { column, down: column === sorted.column && !sorted.down };
          update();
          scroll.querySelectorAll("button")[column].focus();
        };
      });
      const body = element("tbody", made);
      for (const row of rows) {
        const line = element("tr", body);
        columns.forEach(([, text], column) => element("td", line, text(row), kind(column)));
        if (row.against?.tone) line.children[columns.length - 2].classList.add(row.against.tone);
      }
    }

    function update() {
      const metric = find(metricMenu.value, classMenu.value) ?? metrics.find((one) => bare(one) === metricMenu.value);
      metric.runs ??= read(metric);
      metric.title = bare(metric) + (metric.share ? ", %" : metric.unit && `, ${metric.unit}`);
      const base = +baseMenu.value;
      const chosen = menus.map((one) => +one.value);
      const series = overTime?.series.find(({ name }) => name === timeMenu.value);
      if (series) series.runs ??= read(series, overTime.parts);
      const along = !series && swept !== undefined && chosen[others.indexOf(swept)] < 0 ? swept : -1;
      const rows = [];
      cells.forEach((cell, number) => {
        cell.number = number;
        const runs = metric.runs[number].filter((value) => value !== null);
        const shown = others.every((index, place) => chosen[place] < 0 || chosen[place] === cell.at[index]);
        const level = cell.at[own];
        if (!shown || arms[level].ariaPressed !== "true" || !runs.length) return;
        const { mean, low, high } = spread(runs, metric.ratio);
        const panel = others.filter((index, place) => index !== along && chosen[place] < 0).map((index) => levels[index][cell.at[index]]).join(", ");
        const name = levels[own][level];
        const against = level === base ? null : compared(metric, cell, base);
        const more = against && `${against.text} against ${levels[own][base]}`;
        rows.push({ cell, panel, more, series: along < 0 ? "" : name, at: along < 0 ? name : levels[along][cell.at[along]], value: mean, low, high,
          seeds: each.ariaPressed === "true" ? runs : [], mark: "", label: panel, place: 0, tint: colour(level), dash: dash(level), against });
      });
      const group = classOf(metric);
      // How values are spread within runs: the percentiles of the metric's family, as means over seeds.
      const family = ["p50", "p90", "p99"].map((part) => find(bare(metric).replace(/_(mean|max|p\d+)$/, `_${part}`), group));
      spans.disabled = !family.every(Boolean) || family[0] === family[1];
      const wide = spans.ariaPressed === "true" && !spans.disabled;
      for (const one of wide ? family : []) one.runs ??= read(one);
      const drawn = !wide ? rows : rows.map((row) => {
        const [low, value, high] = family.map((one) => d3.mean(one.runs[row.cell.number].filter((value) => value !== null)) ?? null);
        return { ...row, low, value, high, seeds: [], more: "p90 (p50 to p99), means over seeds" };
      });
      note.textContent = [`${metric.about[0].toUpperCase()}${metric.about.slice(1)}${group && `, ${group} requests`}.`,
        { true: "Less is better.", false: "More is better." }[metric.less],
        group === classMenu.value ? "" : "It is not told by class.",
        series && `The chart shows ${series.name} of all requests in each ${overTime.parts}th of the run, warm-up included, as means over seeds.`].filter(Boolean).join(" ");
      canvas.replaceChildren();
      scroll.replaceChildren();
      // A point for each part of a run, in its middle.
      const parts = ({ cell, ...row }) => series.runs[cell.number].map((value, part) => ({ ...row, series: row.at, value, mark: "none", more: "", label: "",
        at: overTime.seconds[cell.number] * (part + 0.5) / overTime.parts, low: null, high: null, seeds: [] })).filter(({ value }) => value !== null);
      if (series) draw(canvas, rows.flatMap(parts), { form: "lines", at: "time, s", atScale: "zero", value: series.name, valueScale: "fit" });
      else draw(canvas, drawn, { form: along < 0 ? "rows" : "lines", at: along < 0 ? "" : last(factors[along]), atScale: "names",
        value: wide ? metric.title.replace(/_(mean|max|p\d+),/, ": p50, p90 and p99,") : metric.title, valueScale: "fit", spans: wide });
      table(metric, rows, base);
      // The heading of a small chart makes it the only one.
      for (const heading of canvas.querySelectorAll("h4")) {
        const { cell } = rows.find((row) => row.panel === heading.textContent);
        const button = element("button", heading);
        button.append(heading.firstChild);
        button.title = "Show this one alone";
        button.onclick = () => {
          others.forEach((index, place) => index !== along && (menus[place].value = cell.at[index]));
          update();
        };
      }
    }
    return update;
  }

  const home = document.getElementById("explore");
  const explore = home && explorer(home);

  function shown(figure) {
    try {
      show(figure);
    } catch (error) {
      const canvas = figure.querySelector(".canvas");
      canvas.replaceChildren();
      element("p", canvas, `This could not be drawn (${error.message}); its data are behind the link.`, "failed");
      console.error(error);
    }
  }

  function all() {
    document.querySelectorAll("figure[data-form]").forEach(shown);
    explore?.();
  }

  // A link into details opens them; what is in there is drawn when it has a width.
  function open(id) {
    const found = id && document.getElementById(id);
    if (found instanceof HTMLDetailsElement) found.open = true;
  }
  document.addEventListener("click", (event) => {
    const clicked = event.target.closest("a");
    open((clicked?.getAttribute("href") ?? clicked?.getAttributeNS("http://www.w3.org/1999/xlink", "href"))?.match(/^#(.*)/)?.[1]);
  });
  document.addEventListener("toggle", (event) => event.target.querySelectorAll?.("figure[data-form]").forEach(shown), true);
  open(location.hash.slice(1));

  let width = window.innerWidth;
  let waiting = 0;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(all);
  });
  all();
})();
