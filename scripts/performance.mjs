// Generates docs/performance.md from the recorded results of the benchmark.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readProfile } from '../bench/lib/profile-record.mjs'
import { readResults } from '../bench/lib/results.mjs'
import { barText, number, range, roundsText, short, verdict } from '../bench/lib/table.mjs'
import { page, table } from './markdown.mjs'

const isCompared = ({ bare }) => Number.isFinite(bare)
const unitOf = (value, unit) => (Number.isFinite(value) ? `${number(value)}${unit ? ` ${unit}` : ''}` : '')
const nameOf = ({ title, error }) => (error ? `${title}: not measured` : title)
const result = (outcome) => [barText(outcome), verdict(outcome) === 'MISSED' ? 'missed' : verdict(outcome), roundsText(outcome)]

const compared = (row) => [
  nameOf(row),
  unitOf(row.bare, row.unit),
  unitOf(row.ours, row.unit),
  Number.isFinite(row.ratio) ? `${short(row.ratio)} (${range({ min: row.ratioMin, max: row.ratioMax })})` : '',
  row.cpu?.ratio
    ? `${number(row.cpu.bare.median)} / ${number(row.cpu.ours.median)} µs: ${short(row.cpu.ratio.median)} (${range(row.cpu.ratio)})`
    : '',
  ...result(row),
]

const alone = (row) => [
  nameOf(row),
  unitOf(row.ours, row.unit),
  range(row.spread, number),
  row.cpu?.ours ? `${number(row.cpu.ours.median)} µs (${range(row.cpu.ours, number)})` : '',
  ...result(row),
]

function chapter({ setting: { date, commit, node, cores, cpu, syncMs }, quick, rows }) {
  const disturbed = rows.filter((row) => row.disturbed).length
  const busiest = Math.max(0, ...rows.map(({ otherCores }) => otherCores ?? 0))
  const [both, single] = [rows.filter(isCompared), rows.filter((row) => !isCompared(row))]
  return [
    `## ${date.slice(0, 16).replace('T', ' ')} UTC, commit ${commit ?? 'unknown'}`,
    `${cpu}, ${cores} cores, Node ${node}, ${number(syncMs)} ms for a small synced write.`,
    quick
      ? '**A quick run, with a tenth of the requests in few rounds.** It shows that the benchmark runs; the code is not even warm.'
      : undefined,
    disturbed > 0
      ? `**Other processes disturbed every round of ${disturbed} of these ${rows.length} rows, with up to ${short(busiest)} cores.** Such rows are marked with \`!\`: their rates are those of a busy machine. Ratios of CPU time are less affected.`
      : undefined,
    both.length > 0
      ? table(['measured', 'bare server', 'Sluice', 'ratio', 'CPU time, bare / Sluice', 'bar', '', 'rounds'], both.map(compared))
      : undefined,
    single.length > 0 ? table(['measured', 'Sluice', 'range', 'CPU time', 'bar', '', 'rounds'], single.map(alone)) : undefined,
  ].filter(Boolean)
}

const us = (value) => (value === undefined ? '' : number(value))

const WHY_MORE = [
  'The difference comes from these parts:',
  '',
  '- The database makes the same number of system calls for a message on both sides, whose time varies with the disk. Sluice binds 16 values (`insert`) where the bare server binds 10, because one statement stores every kind of request, with a number and a trace.',
  '- `parseJson` decodes and parses the body on both sides; the bare server has this time in `parse` and `utf8Slice`. Sluice also refuses invalid UTF-8.',
  '- `Hmac`, `digest` and `hash` are one signature and one key of a row on both sides.',
  '- The engine itself and garbage collection take longer because Sluice runs more code and keeps more objects for each message. A larger young generation of V8 (`--max-semi-space-size`) takes nothing from it.',
  '- A message waits for its turn in Sluice: `enter` of the queues, its lane, its account and its parsed content stay in memory, which the garbage collector copies once. The bare server forgets it.',
  '- The packages delivery, channel-chatapp, sdk, config and http check the allowlist, the room of the account, commands, replies to approvals and the agent of the conversation, and build the key of the session. Each step takes 1 to 3 µs.',
  '- `has` looks for a repeat among the recent ids, which spares a read of the file for each repeat.',
].join('\n')

/** The difference between the two servers, function by function. */
function profileChapter() {
  const profile = readProfile()
  if (!profile) return []
  const { setting: machine, load, bare, ours } = profile
  const of = (list, { name, file }) => list.find((other) => other.name === name && other.file === file)?.us
  const onlyBare = bare.areas.filter((area) => of(ours.areas, area) === undefined)
  const areas = [...ours.areas, ...onlyBare].map((area) => {
    const [theirs, own] = [of(bare.areas, area), of(ours.areas, area)]
    return [area.name, us(theirs), us(own), us((own ?? 0) - (theirs ?? 0))]
  })
  const functions = ours.functions.map(({ name, file, us: own }) => [`\`${name}\``, file, us(of(bare.functions, { name, file })), us(own)])
  return [
    '## Where the time of a stored message goes',
    `Both servers under the profiler of Node, which slows them down, with ${load.connections} connections and the same row in the database: the time in each function itself for one message, in µs, with the time that it waits for the disk. \`node bench/profile.mjs\` records it; recorded ${machine.date.slice(0, 16).replace('T', ' ')} UTC at commit ${machine.commit}. Compare the columns with each other, and with nothing else.`,
    table(['area', 'bare server', 'Sluice', 'difference'], areas),
    WHY_MORE,
    'The functions of Sluice that take the most time:',
    table(['function', 'of', 'bare server', 'Sluice'], functions),
  ]
}

const DEVICES_FILE = join(import.meta.dirname, '..', 'bench', 'devices.json')

/** The devices that were built to save processor time, what each was measured to save, and whether it was kept. */
function devicesChapter() {
  const { setting, columns, rows } = JSON.parse(readFileSync(DEVICES_FILE, 'utf8'))
  const cell = (found) => (found ? `${short(found.median)} (${short(found.from)}–${short(found.to)})` : '')
  return [
    '## Speed that was measured, and what became of it',
    `A device that saves processor time is kept if it saves a tenth of the whole time of a row; otherwise the simpler code takes its place. A cell is the processor time of the daemon for one message or turn without the device, divided by the time with it: the median of the rounds, and their middle half in brackets. The first line compares a build with itself, which shows the noise of the machine. ${setting}`,
    table(
      ['device', ...columns.map(({ title }) => title), 'result'],
      [...rows.map(({ device, found, result: became }) => [device, ...columns.map(({ name }) => cell(found[name])), became])],
    ),
  ]
}

/** Returns the page. */
export function performancePage() {
  const { runs } = readResults()
  return page(
    'Performance',
    'This page shows what Sluice needs, compared with bare Node servers that do the same job. `pnpm bench --write` measures it and records the results; [bench/README.md](../bench/README.md) describes each row.',
    '```sh\npnpm bench --write --peers\n```',
    'Both sides of a row run one after the other in each round. A cell shows the median of the rounds, and the range from the lowest to the highest in brackets. CPU time is the time of the server for one unit of work: a message, a turn, or an event for one subscriber. `rounds` gives the rounds that count, of all: a round during which other processes used more than a quarter of a core is dropped.',
    ...runs.flatMap(chapter),
    ...profileChapter(),
    ...devicesChapter(),
  )
}
