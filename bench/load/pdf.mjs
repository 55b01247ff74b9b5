// Reads a PDF alternately with the service for features and with a bare call of the library. `node pdf.mjs JOB`, JOB as JSON:
// {pages, slices}. Prints {ours, bare, firstMs, longestBlockMs} as JSON: medians in milliseconds, the time of the first read with the
// start of the worker, and the longest delay of the event loop while the service reads this PDF or one of the largest allowed size.
import { createRequire } from 'node:module'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { deflateSync } from 'node:zlib'
import { systemClock } from '../../packages/kit/src/time/system-clock.ts'
import feature from '../../packages/tool-pdf/src/index.ts'
import { handMade, streamObject } from '../../packages/tool-pdf/src/testing/hand-made.ts'
import { median } from '../lib/numbers.mjs'

const WARM_UP_SLICES = 5
const LINES = 45
const LARGE_BYTES = 49 * 1024 * 1024
const job = JSON.parse(process.argv[2])
const require = createRequire(new URL('../../packages/tool-pdf/package.json', import.meta.url))
const { extractText } = require('unpdf')

const line = (page, number) =>
  `1 0 0 1 40 ${800 - number * 17} Tm (Page ${page}, line ${number}: this text is read ${page * number} times.) Tj`
const lines = (page) => Array.from({ length: LINES }, (_, number) => line(page, number)).join('\n')
const content = (page) => streamObject(deflateSync(`BT /F1 10 Tf ${lines(page)} ET`), '/Filter /FlateDecode')
const objects = Object.fromEntries(Array.from({ length: job.pages }, (_, at) => [4 + 2 * at, content(at + 1)]))
const pdf = handMade({ pages: Array.from({ length: job.pages }, () => 'x'), objects })
const large = handMade({ objects: { 9: streamObject(Buffer.alloc(LARGE_BYTES, 'x')) } })

const log = { debug() {}, info() {}, warn: console.error, error: console.error }
const { services, close } = feature.build({ clock: systemClock, log }, {})
const { signal } = new AbortController()
let longestBlockMs = 0

async function timed(read) {
  const start = performance.now()
  const texts = await read()
  const tookMs = performance.now() - start
  if (texts.length !== job.pages || !texts.at(-1)?.includes(`Page ${job.pages}, line ${LINES - 1}`))
    throw new Error('the text is not complete')
  return tookMs
}

/** Measures the delays of the event loop, for the service only: the bare call blocks the event loop. */
async function watched(read) {
  const delays = monitorEventLoopDelay({ resolution: 1 })
  delays.enable()
  await sleep(5)
  const result = await read()
  await sleep(5)
  delays.disable()
  longestBlockMs = Math.max(longestBlockMs, delays.max / 1e6)
  return result
}

const ours = () => watched(() => timed(() => services.pdfText(pdf, { signal })))
const bare = () => timed(async () => (await extractText(new Uint8Array(pdf))).text)

const firstMs = await ours()
await watched(() => services.pdfText(large, { signal }))
const slices = []
for (let slice = 0; slice < WARM_UP_SLICES + job.slices; slice++) slices.push({ ours: await ours(), bare: await bare() })
await close()
const of = (name) => median(slices.slice(WARM_UP_SLICES).map((slice) => slice[name]))
console.log(JSON.stringify({ ours: of('ours'), bare: of('bare'), firstMs, longestBlockMs }))
