// Preloaded into a process by `--expose-gc --import 'inside.mjs?to=FILE'`: on SIGUSR2 it collects its garbage and writes what is
// left to FILE. With `&blocks` it also tells the longest time its event loop was held up since it began to listen,
// with `&counts` how many abort signals, timers and listeners there are.
import { renameSync, writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { queryObjects } from 'node:v8'

/** Counts abort signals, timers that are due once, and listeners of event targets that are alive after the collection. */
function countsOfLeaks() {
  const target = new EventTarget()
  target.addEventListener('x', () => undefined)
  const events = Object.getOwnPropertySymbols(target)
    .map((symbol) => target[symbol])
    .find((value) => value?.get?.('x'))
  const count = (type) => queryObjects(type, { format: 'count' })
  return {
    signals: count(AbortSignal),
    timers: process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length,
    listeners: count(events.get('x').next.constructor),
  }
}

const { searchParams } = new URL(import.meta.url)
const to = searchParams.get('to')
const delays = searchParams.has('blocks') ? monitorEventLoopDelay({ resolution: 1 }) : undefined
delays?.enable()

process.on('SIGUSR2', () => {
  const longestBlockMs = delays && delays.max / 1e6
  // The second one takes what finalizers of the first have let go of.
  globalThis.gc()
  globalThis.gc()
  const { rss, heapUsed, external } = process.memoryUsage()
  const counts = searchParams.has('counts') ? countsOfLeaks() : {}
  writeFileSync(`${to}.new`, JSON.stringify({ rss, heapUsed, external, longestBlockMs, ...counts }))
  renameSync(`${to}.new`, to)
})
