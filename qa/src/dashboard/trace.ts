/** The tasks of a page, from a trace of the browser. */

/** The categories that a trace needs. */
export const TRACED = ['blink.user_timing', 'disabled-by-default-devtools.timeline']

export interface Task {
  readonly ms: number
  /** The time of the processor, which does not depend on what else the machine does. */
  readonly cpuMs: number
}

interface TraceEvent {
  readonly name: string
  readonly pid: number
  readonly tid: number
  readonly ts: number
  readonly dur?: number
  readonly tdur?: number
}

/** The tasks of the page that set the mark, after it. */
export function tasksAfterMark(trace: Buffer, name: string): Task[] {
  const { traceEvents } = JSON.parse(String(trace)) as { traceEvents: readonly TraceEvent[] }
  const mark = traceEvents.find((event) => event.name === name)
  if (!mark) throw new Error(`The trace has no mark '${name}'`)
  return traceEvents
    .filter(({ name: task, pid, tid, ts }) => task === 'RunTask' && pid === mark.pid && tid === mark.tid && ts > mark.ts)
    .map(({ dur = 0, tdur = 0 }) => ({ ms: dur / 1000, cpuMs: tdur / 1000 }))
}

export const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
