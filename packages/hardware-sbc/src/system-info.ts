/** The state of the machine, read from `node:os` and sysfs without using the network, and the tool `sbc_system_info`. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { freemem, hostname, networkInterfaces, totalmem } from 'node:os'
import { join } from 'node:path'
import { type Clock, defineTool, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import type { SystemInfo } from './describe-board.ts'
import type { Sbc } from './sbc.ts'

const MAX_AGE_MS = 5000
const ZONES_MAX = 16
const MIB = 1024 ** 2
/** The interfaces of containers and virtual machines on this machine. */
const VIRTUAL = /^(?:docker|veth|br-|virbr|cni|flannel)/

/** Returns a function that reads the state synchronously. Its result is at most 5 s old. */
export function createSystemInfo(root: string, clock: Clock): () => SystemInfo {
  let last: { readonly info: SystemInfo; readonly atMs: number } | undefined
  return () => {
    const now = clock.monotonicMs()
    if (!last || now - last.atMs >= MAX_AGE_MS) last = { info: readSystemInfo(root), atMs: now }
    return last.info
  }
}

function readSystemInfo(root: string): SystemInfo {
  const interfaces = Object.entries(networkInterfaces()).filter(([name]) => !VIRTUAL.test(name))
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

/** Reads synchronously, because sysfs is in memory and never waits for a disk. */
function cpuCelsius(folder: string): number | null {
  try {
    const zones = readdirSync(folder)
      .filter((name) => /^thermal_zone\d+$/.test(name))
      .slice(0, ZONES_MAX)
    const zone = zones.find((name) => readFileSync(join(folder, name, 'type'), 'utf8').startsWith('cpu')) ?? zones[0]
    if (zone === undefined) return null
    const millidegrees = Number.parseInt(readFileSync(join(folder, zone, 'temp'), 'utf8'), 10)
    return Number.isNaN(millidegrees) ? null : Math.round(millidegrees / 100) / 10
  } catch {
    return null
  }
}

/** The tool accesses no device, so it needs no lease. */
export const sbcSystemInfo = (sbc: Sbc, info: () => SystemInfo): Tool =>
  defineTool({
    name: 'sbc_system_info',
    description: 'Returns model, host name, IP address, memory and CPU temperature of this single-board computer as JSON.',
    input: v.object({}),
    risk: 'read',
    decider: 'asker',
    egress: false,
    untrusted: false,
    available: () => sbc.board !== undefined,
    async run() {
      const { model, fullName } = await sbc.detect()
      const state = info()
      return JSON.stringify({
        model: fullName,
        board: model.name,
        hostname: state.hostname,
        ip_address: state.ip,
        interface: state.interface,
        wifi_interface: state.wifiInterface,
        ram_total_mb: state.ramTotalMb,
        ram_free_mb: state.ramFreeMb,
        cpu_temp_celsius: state.cpuCelsius,
        gpio_available: await sbc.hasGpio(),
        onboard_led_gpio: model.ledGpio,
      })
    },
  })
