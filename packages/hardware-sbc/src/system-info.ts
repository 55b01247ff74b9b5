/** What the machine is and how it is doing, by `node:os` and sysfs: nothing is asked of the network. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { freemem, hostname, networkInterfaces, totalmem } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '@sluice/sdk'

export interface SystemInfo {
  readonly hostname: string
  /** The first address others can reach; null: none. */
  readonly ip: string | null
  /** The interface it is on. */
  readonly interface: string | null
  readonly wifiInterface: string | null
  readonly ramTotalMb: number
  readonly ramFreeMb: number
  readonly cpuCelsius: number | null
}

const FRESH_MS = 5000
const ZONES_MAX = 16
const MIB = 1024 ** 2
/** Networks of containers and virtual machines inside. */
const INNER = /^(?:docker|veth|br-|virbr|cni|flannel)/

/** Answers at once; what it says is at most 5 s old. */
export function createSystemInfo(root: string, clock: Clock): () => SystemInfo {
  let known: { readonly info: SystemInfo; readonly atMs: number } | undefined
  return () => {
    const now = clock.monotonicMs()
    if (!known || now - known.atMs >= FRESH_MS) known = { info: look(root), atMs: now }
    return known.info
  }
}

function look(root: string): SystemInfo {
  const interfaces = Object.entries(networkInterfaces()).filter(([name]) => !INNER.test(name))
  const addresses = interfaces.flatMap(([name, all = []]) => all.filter(({ internal }) => !internal).map((each) => ({ name, ...each })))
  const found = addresses.find(({ family }) => family === 'IPv4') ?? addresses.find(({ scopeid }) => !scopeid)
  return {
    hostname: hostname(),
    ip: found?.address ?? null,
    interface: found?.name ?? null,
    wifiInterface: interfaces.find(([name]) => existsSync(join(root, 'sys/class/net', name, 'wireless')))?.[0] ?? null,
    ramTotalMb: Math.round(totalmem() / MIB),
    ramFreeMb: Math.round(freemem() / MIB),
    cpuCelsius: cpuCelsius(join(root, 'sys/class/thermal')),
  }
}

/** sysfs is memory: reading it synchronously waits for no disk. */
function cpuCelsius(folder: string): number | null {
  try {
    const zones = readdirSync(folder)
      .filter((name) => /^thermal_zone\d+$/.test(name))
      .slice(0, ZONES_MAX)
    const zone = zones.find((name) => readFileSync(join(folder, name, 'type'), 'utf8').startsWith('cpu')) ?? zones[0]
    if (zone === undefined) return null
    const millis = Number.parseInt(readFileSync(join(folder, zone, 'temp'), 'utf8'), 10)
    return Number.isNaN(millis) ? null : Math.round(millis / 100) / 10
  } catch {
    return null
  }
}
