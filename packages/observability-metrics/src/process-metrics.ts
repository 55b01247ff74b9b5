/**
 * Metrics of the process under their customary names. The default metrics of the library are not used, because they start a
 * 10 ms timer and a garbage-collection observer that cannot be stopped.
 */
import { readdir } from 'node:fs/promises'
import { performance } from 'node:perf_hooks'
import type * as Prom from './prom-client.ts'

type Read = () => number | Promise<number>

const MICROSECONDS = 1e6

const TOTALS: readonly (readonly [name: string, help: string, read: Read])[] = [
  ['process_cpu_user_seconds_total', 'CPU time in user mode', () => process.cpuUsage().user / MICROSECONDS],
  ['process_cpu_system_seconds_total', 'CPU time in system mode', () => process.cpuUsage().system / MICROSECONDS],
  ['process_cpu_seconds_total', 'CPU time', () => (process.cpuUsage().user + process.cpuUsage().system) / MICROSECONDS],
]

const GAUGES: readonly (readonly [name: string, help: string, read: Read])[] = [
  ['process_start_time_seconds', 'Start of the process since 1970', () => performance.timeOrigin / 1000],
  ['process_resident_memory_bytes', 'Resident memory', () => process.memoryUsage.rss()],
  ['nodejs_heap_size_total_bytes', 'Size of the heap', () => process.memoryUsage().heapTotal],
  ['nodejs_heap_size_used_bytes', 'Used part of the heap', () => process.memoryUsage().heapUsed],
  ['nodejs_external_memory_bytes', 'Memory of objects outside the heap', () => process.memoryUsage().external],
  ['nodejs_active_resources', 'Resources that keep the event loop alive', () => process.getActiveResourcesInfo().length],
]

export function registerProcessMetrics(prom: typeof Prom, registry: Prom.Registry): void {
  const registers = [registry]
  for (const [name, help, read] of TOTALS) {
    new prom.Counter({
      name,
      help,
      registers,
      async collect() {
        this.reset()
        this.inc(await read())
      },
    })
  }
  const gauge = (name: string, help: string, read: Read) =>
    new prom.Gauge({
      name,
      help,
      registers,
      async collect() {
        this.set(await read())
      },
    })
  for (const [name, help, read] of GAUGES) gauge(name, help, read)
  gauge('nodejs_eventloop_utilization', 'Busy share of the event loop since the last reading', sinceLastReading())
  if (process.platform === 'linux') gauge('process_open_fds', 'Open file descriptors', openDescriptors)
  const version = new prom.Gauge({ name: 'nodejs_version_info', help: 'Version of Node', labelNames: ['version'], registers })
  version.set({ version: process.version }, 1)
}

function sinceLastReading(): Read {
  let last = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, last)
    last = now
    return utilization
  }
}

/** Excludes the descriptor that this reading opens. */
const openDescriptors = async (): Promise<number> => (await readdir('/proc/self/fd')).length - 1
