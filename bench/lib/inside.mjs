// Preloaded into a process by `--expose-gc --import 'inside.mjs?to=FILE'`: on SIGUSR2 it collects its garbage and writes what is
// left to FILE. With `&blocks` it also tells the longest time its event loop was held up since it began to listen.
import { renameSync, writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'

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
  writeFileSync(`${to}.new`, JSON.stringify({ rss, heapUsed, external, longestBlockMs }))
  renameSync(`${to}.new`, to)
})
