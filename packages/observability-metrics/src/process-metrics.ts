/**
 * Metrics of the process under their customary names. The default metrics of the library are not used, because they start a
 * 10 ms timer and a garbage-collection observer that cannot be stopped.
 */
import { readdir } from 'node:fs/promises'
import { performance } from 'node:perf_hooks'
import type * as Prom from './prom-client.ts'
import { METRICS, type NameOf } from './table.ts'

type Read = () => number | Promise<number>

const MICROSECONDS = 1e6

const TOTALS: Partial<Record<NameOf<'counter'>, Read>> = {
  process_cpu_user_seconds_total: () => process.cpuUsage().user / MICROSECONDS,
  process_cpu_system_seconds_total: () => process.cpuUsage().system / MICROSECONDS,
  process_cpu_seconds_total: () => (process.cpuUsage().user + process.cpuUsage().system) / MICROSECONDS,
}

const gauges = (): Partial<Record<NameOf<'gauge'>, Read>> => ({
  process_start_time_seconds: () => performance.timeOrigin / 1000,
  process_resident_memory_bytes: () => process.memoryUsage.rss(),
  ...(process.platform === 'linux' && { process_open_fds: openDescriptors }),
  nodejs_heap_size_total_bytes: () => process.memoryUsage().heapTotal,
  nodejs_heap_size_used_bytes: () => process.memoryUsage().heapUsed,
  nodejs_external_memory_bytes: () => process.memoryUsage().external,
  nodejs_active_resources: () => process.getActiveResourcesInfo().length,
  nodejs_eventloop_utilization: sinceLastReading(),
})

export function registerProcessMetrics(prom: typeof Prom, registry: Prom.Registry): void {
  const registers = [registry]
  for (const [name, read] of Object.entries(TOTALS)) {
    new prom.Counter({
      name,
      help: METRICS[name as NameOf<'counter'>].help,
      registers,
      async collect() {
        this.reset()
        this.inc(await read())
      },
    })
  }
  for (const [name, read] of Object.entries(gauges())) {
    new prom.Gauge({
      name,
      help: METRICS[name as NameOf<'gauge'>].help,
      registers,
      async collect() {
        this.set(await read())
      },
    })
  }
  const { help, labels } = METRICS.nodejs_version_info
  const version = new prom.Gauge({ name: 'nodejs_version_info', help, labelNames: labels, registers })
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
