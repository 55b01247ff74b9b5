/** What a program did to the files of one folder, call by call, as the shim writes it down. */

/** The program tells about itself in this file, whose writes stand in the trace where it wrote them. */
export const MARKS = 'marks'
/** The name of the folder itself. */
export const FOLDER = '.'

const LINE_END = 10
const OPERATIONS = ['create', 'write', 'truncate', 'sync', 'unlink', 'rename'] as const

export interface Call {
  readonly operation: (typeof OPERATIONS)[number]
  readonly file: string
  /** Where a write began, or the size a file was cut to. */
  readonly position: number
  readonly failed: boolean
  /** What was written, or the new name; empty for a call that failed. */
  readonly bytes: Uint8Array
}

export function parseTrace(trace: Buffer): Call[] {
  const calls: Call[] = []
  for (let at = 0; at < trace.length; ) {
    const lineEnd = trace.indexOf(LINE_END, at)
    const [operation, file, position, errno, length] = trace.toString('utf8', at, lineEnd).split(' ')
    at = lineEnd + 1 + Number(length)
    const known = OPERATIONS.find((name) => name === operation)
    if (!known || file === undefined) throw new Error(`the trace is broken before byte ${at}`)
    calls.push({ operation: known, file, position: Number(position), failed: errno !== '0', bytes: trace.subarray(lineEnd + 1, at) })
  }
  return calls
}

/** A call the shim can fail, which it counts. */
export const canFail = ({ operation, file }: Call): boolean =>
  file !== MARKS && (operation === 'write' || operation === 'truncate' || operation === 'sync')
