// Reads the CPU time and memory of processes, and the CPU time of the machine, from Linux's /proc.
import { readdirSync, readFileSync } from 'node:fs'

const TICKS_PER_SEC = 100

/** Returns null if the process has ended. */
function readStat(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name in brackets may contain any character, so the numbered fields are read after its last bracket.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const [own, ofDeadChildren] = [Number(fields[11]) + Number(fields[12]), Number(fields[13]) + Number(fields[14])]
    return { pid: Number(pid), parent: Number(fields[1]), ownSecs: own / TICKS_PER_SEC, deadSecs: ofDeadChildren / TICKS_PER_SEC }
  } catch {
    return null
  }
}

/** Returns a process and its living descendants. */
function family(pid) {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const byParent = Map.groupBy(all.map(readStat).filter(Boolean), ({ parent }) => parent)
  const found = []
  const visit = (stat) => {
    found.push(stat)
    for (const child of byParent.get(stat.pid) ?? []) visit(child)
  }
  const root = readStat(pid)
  if (root) visit(root)
  return found
}

/** Returns the CPU seconds used by a process and its descendants, including descendants that have ended. */
export const familyCpuSecs = (pid) => family(pid).reduce((sum, { ownSecs, deadSecs }) => sum + ownSecs + deadSecs, 0)

/** Returns the CPU seconds used by one process. */
export const cpuSecs = (pid) => readStat(pid)?.ownSecs ?? 0

/** Returns the CPU milliseconds of the children of this process that have ended, in steps of 10 ms. */
export const endedChildrenCpuMs = () => (readStat(process.pid)?.deadSecs ?? 0) * 1000

/** Returns the CPU milliseconds used by the threads of one process that have not ended, more exactly than `cpuSecs`. */
export function threadsCpuMs(pid) {
  const tasks = `/proc/${pid}/task`
  const nanoseconds = readdirSync(tasks).map((task) => Number(readFileSync(`${tasks}/${task}/schedstat`, 'utf8').split(' ')[0]))
  return nanoseconds.reduce((sum, value) => sum + value, 0) / 1e6
}

/** Returns the memory of one process that it shares with no other, in MiB. */
export function privateMiB(pid) {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
  const kibibytes = [...text.matchAll(/^Private_\w+:\s+(\d+)/gm)].map(([, value]) => Number(value))
  return kibibytes.reduce((sum, value) => sum + value, 0) / 1024
}

/** Returns the busy CPU seconds of all cores together since the machine started. */
export function machineCpuSecs() {
  const [user, nice, system, , , irq, softIrq, steal] = readFileSync('/proc/stat', 'utf8').split('\n')[0].split(/\s+/).slice(1).map(Number)
  return (user + nice + system + irq + softIrq + steal) / TICKS_PER_SEC
}

/** Returns the resident memory of a process and its descendants, in MiB. */
export function residentMiB(pid) {
  const kibibytes = family(pid).map((stat) => Number(/^VmRSS:\s+(\d+)/m.exec(statusOf(stat.pid))?.[1] ?? 0))
  return kibibytes.reduce((sum, value) => sum + value, 0) / 1024
}

/** Returns an empty text if the process has ended, as a short command of a daemon may between two reads. */
function statusOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8')
  } catch {
    return ''
  }
}
