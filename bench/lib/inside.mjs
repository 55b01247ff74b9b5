// Preloaded into a process by `--expose-gc --import 'inside.mjs?to=FILE'`: on SIGUSR2, collects garbage and writes the memory in use to
// FILE. `&blocks` adds the longest delay of the event loop since the start; `&counts` adds the numbers of abort signals, timers and
// listeners.
import { renameSync, writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { queryObjects } from 'node:v8'

/** Counts the abort signals, pending timers and listeners of event targets that survived the collection. */
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
  // The second collection frees objects that finalizers of the first one released.
  globalThis.gc()
  globalThis.gc()
  const { rss, heapUsed, external } = process.memoryUsage()
  const counts = searchParams.has('counts') ? countsOfLeaks() : {}
  writeFileSync(`${to}.new`, JSON.stringify({ rss, heapUsed, external, longestBlockMs, ...counts }))
  renameSync(`${to}.new`, to)
})
