"""The style of reports: dark or light as the reader's system is, wide screen, phone and paper."""

STYLE = """
:root {
  color-scheme: light dark;
  --ground: #fff; --raised: #f6f7f9; --ink: #1a1d21; --soft: #5c6470; --rule: #dfe3e8;
  --accent: #2f6fde; --pale: #a9c6f5; --limit: #1a1d21; --bad: #c4321f; --good: #1d7a45;
  --c0: #4269d0; --c1: #efb118; --c2: #e8604c; --c3: #4fb3a3; --c4: #3c9a4c; --c5: #e77aa6;
  --c6: #9463d8; --c7: #8fb3e8; --other: #a3a9b2;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14171b; --raised: #1d2127; --ink: #e8eaed; --soft: #a2aab5; --rule: #333a43;
    --accent: #74a5f7; --pale: #3b5f9c; --limit: #e8eaed; --bad: #ff8a75; --good: #66c98d;
    --c0: #6f92f0; --c1: #efbf4d; --c2: #ff8672; --c3: #6cc9b9; --c4: #62bb6f; --c5: #f39dc0;
    --c6: #b48df0; --c7: #b0caf2; --other: #7a818b;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 72rem; background: var(--ground);
  color: var(--ink); font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", sans-serif;
}
h1 { font-size: 1rem; font-weight: 600; margin: 0; color: var(--soft); overflow-wrap: anywhere; }
.verdict { font-size: 1.6rem; line-height: 1.3; font-weight: 600; margin: .5rem 0 1.5rem; }
h2 { font-size: 1.15rem; margin: 0 0 .15rem; }
section { margin: 2.75rem 0 0; }
section > p { margin: 0 0 .75rem; color: var(--soft); max-width: 46rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .75rem; }
.tiles div { background: var(--raised); border-radius: .5rem; padding: .7rem .9rem; }
.tiles dt { color: var(--soft); font-size: .85rem; }
.tiles dd { margin: 0; font-size: 1.45rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.tiles small { display: block; color: var(--soft); font-size: .8rem; font-weight: 400; }
.unit { margin: 0 0 .25rem; color: var(--soft); font-size: .8rem; }
.unit.below { text-align: right; margin: .15rem 0 0; }
.plot { display: grid; grid-template: 14rem 1.4rem / 3.2rem 1fr; font-size: .8rem; }
.plot .y, .x { position: relative; color: var(--soft); font-variant-numeric: tabular-nums; }
.plot .y span { position: absolute; right: .5rem; transform: translateY(50%); }
.plot .x { grid-column: 2; }
.x span { position: absolute; top: .25rem; transform: translateX(-50%); white-space: nowrap; }
.x span.first { transform: none; }
.x span.last { transform: translateX(-100%); }
.ground { border-bottom: 1px solid var(--soft); }
.plot svg, .heat svg { display: block; width: 100%; height: 100%; overflow: visible; }
.grid { stroke: var(--rule); stroke-width: 1; vector-effect: non-scaling-stroke; }
.line, .limit { fill: none; stroke-width: 2; vector-effect: non-scaling-stroke; stroke: var(--c0); }
.limit { stroke: var(--limit); stroke-dasharray: 5 4; stroke-width: 1.5; }
.legend {
  list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; margin: .5rem 0 0;
  padding: 0; font-size: .85rem;
}
.legend li { overflow-wrap: anywhere; }
.legend i.limit {
  height: 0; border-top: 2px dashed var(--limit); background: none !important; border-radius: 0;
  vertical-align: middle; width: 1.2rem;
}
.legend i {
  display: inline-block; width: .75rem; height: .75rem; border-radius: .15rem; margin-right: .4rem;
}
.shade, .heat rect { background: var(--accent); fill: var(--accent); }
.heat .row { display: grid; grid-template-columns: 9rem 1fr; gap: .6rem; height: .95rem; }
.heat .row + .row { margin-top: 2px; }
.heat .name {
  font-size: .75rem; line-height: .95rem; color: var(--soft); text-align: right;
  overflow: hidden; text-overflow: ellipsis; white-space: nowrap;
}
.heat .x { font-size: .8rem; }
.heat + .legend { margin-top: 1.2rem; }
.table { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
table.plain { max-width: 46rem; }
.table + .table { margin-top: 1.25rem; }
.legend + .unit { margin-top: 1.25rem; }
th { text-align: left; font-weight: 500; color: var(--soft); }
th, td { padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--rule); }
td { vertical-align: middle; }
td:first-child { overflow-wrap: break-word; max-width: 22rem; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.best { font-weight: 700; color: var(--good); }
td.wide { width: 45%; min-width: 7rem; }
td.text { color: var(--soft); overflow-wrap: anywhere; }
.bar { position: relative; height: .9rem; background: var(--raised); border-radius: .2rem; }
.bar i { position: absolute; left: 0; top: 0; bottom: 0; border-radius: .2rem; }
.bar b { position: absolute; top: -.15rem; bottom: -.15rem; width: 2px; background: var(--ink); }
.bars i { display: block; height: .5rem; border-radius: .15rem; min-width: 1px; margin: 2px 0; }
.much, .legend .much { background: var(--accent); }
.most, .legend .most { background: var(--pale); }
.legend .mark { background: var(--ink); width: 2px; margin-left: .3rem; border-radius: 0; }
.side-0 { background: var(--c0); } .side-1 { background: var(--c1); }
.side-2 { background: var(--c2); } .side-3 { background: var(--c3); }
.side-4 { background: var(--c4); } .side-5 { background: var(--c5); }
.side-6 { background: var(--c6); } .side-7 { background: var(--c7); }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: 2rem; }
footer { margin-top: 3.5rem; color: var(--soft); font-size: .85rem; }
@media (max-width: 40rem) {
  body { padding: 1.25rem .9rem 3rem; }
  .verdict { font-size: 1.25rem; }
  .plot { grid-template: 11rem 1.4rem / 2.6rem 1fr; }
  .heat .row { grid-template-columns: 5.5rem 1fr; }
  .tiles { grid-template-columns: 1fr 1fr; }
  .columns { grid-template-columns: 1fr; }
  .tiles dd { font-size: 1.2rem; }
  table { font-size: .8rem; }
  th, td { padding-right: .45rem; }
  td:first-child { max-width: 7rem; }
  th.number { white-space: normal; vertical-align: bottom; }
  td.wide { width: auto; min-width: 2.5rem; }
  table:has(td.wide ~ td.wide) :is(td.wide, th:empty) { display: none; }
  .legend:has(+ .table td.wide ~ td.wide) { display: none; }
}
@media print { body { max-width: none; } section { break-inside: avoid; } }
"""
