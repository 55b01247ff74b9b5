// Measures how long the library takes to find the procedures of an event, alternately with few and with many procedures loaded.
// `node --expose-gc match.mjs JOB`, JOB as JSON: {few, many, slices, events}, where `few` and `many` are {folder, count}. Prints
// {kinds: {<kind>: {few, many, same}}, load} as JSON, in nanoseconds an event. The events of `few` and `many` match any loaded
// procedure; the events of `same` match the few procedures while many are loaded.
import { FolderLibrary } from '../../packages/sop/src/library/folder-library.ts'
import { median } from '../lib/numbers.mjs'
import { payloadOf, TOPICS } from '../lib/procedures.mjs'

const WARM_UP_SLICES = 5
const SOURCES = { webhook: 'webhook', mqtt: 'mqtt', wildcard: 'mqtt', peripheral: 'peripheral' }
const job = JSON.parse(process.argv[2])
const payload = payloadOf()

async function load({ folder, count }) {
  const library = new FolderLibrary({
    settings: () => ({ sources: [{ folder, isAgentWritable: false }], defaultMode: 'supervised' }),
    agreed: async () => new Map(),
    clock: { nowMs: () => Date.now() },
    log: { info() {}, warn: console.error, error: console.error },
    events: { emit() {} },
  })
  globalThis.gc()
  const { heapUsed, external } = process.memoryUsage()
  const start = performance.now()
  await library.reload()
  const tookMs = performance.now() - start
  globalThis.gc()
  const after = process.memoryUsage()
  if (library.list().length !== count)
    throw new Error(`${library.list().length} of ${count} were loaded: ${library.problems()[0]?.message}`)
  return { library, count, tookMs, bytes: after.heapUsed + after.external - heapUsed - external }
}

/** Makes events as a connection does: each topic is a new string, which has no cached hash. */
function eventsOf(kind, count) {
  const topicOf = TOPICS[kind]
  const next = () => Buffer.from(topicOf(Math.floor(Math.random() * count))).toString('latin1')
  return Array.from({ length: job.events }, () => ({ source: SOURCES[kind], topic: next(), payload }))
}

/** Returns the nanoseconds an event. */
function timed({ library }, events) {
  let found = 0
  const start = performance.now()
  for (const event of events) found += library.match(event).length
  const tookMs = performance.now() - start
  if (found !== events.length) throw new Error(`${found} procedures were found for ${events.length} events`)
  return (tookMs * 1e6) / events.length
}

const few = await load(job.few)
const many = await load(job.many)
const kinds = {}
for (const kind of Object.keys(TOPICS)) {
  const slices = Array.from({ length: WARM_UP_SLICES + job.slices }, () => ({
    few: timed(few, eventsOf(kind, few.count)),
    many: timed(many, eventsOf(kind, many.count)),
    same: timed(many, eventsOf(kind, few.count)),
  })).slice(WARM_UP_SLICES)
  kinds[kind] = Object.fromEntries(['few', 'many', 'same'].map((name) => [name, median(slices.map((slice) => slice[name]))]))
}
console.log(JSON.stringify({ kinds, load: { tookMs: many.tookMs, bytesEach: many.bytes / many.count } }))
