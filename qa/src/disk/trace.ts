/** The calls of a program to the files of one folder, as recorded by the shim. */

/** The file in which the program states its progress; its writes appear in the trace in order. */
export const MARKS_FILE = 'marks'
/** The name of the folder itself. */
export const FOLDER = '.'

const LINE_END = 10
const OPERATIONS = ['create', 'write', 'truncate', 'sync', 'unlink', 'rename'] as const

/** One call to the file system. */
export interface Call {
  readonly operation: (typeof OPERATIONS)[number]
  readonly file: string
  /** The offset of a write, or the new size of a truncated file. */
  readonly position: number
  readonly failed: boolean
  /** The written bytes, or the new name; empty for a failed call. */
  readonly bytes: Uint8Array
}

/** Parses the trace; throws if it is invalid. */
export function parseTrace(trace: Buffer): Call[] {
  const calls: Call[] = []
  for (let at = 0; at < trace.length; ) {
    const lineEnd = trace.indexOf(LINE_END, at)
    const [operation, file, position, errno, length] = trace.toString('utf8', at, lineEnd).split(' ')
    at = lineEnd + 1 + Number(length)
    const known = OPERATIONS.find((name) => name === operation)
    if (!known || file === undefined) throw new Error(`the trace is invalid before byte ${at}`)
    calls.push({ operation: known, file, position: Number(position), failed: errno !== '0', bytes: trace.subarray(lineEnd + 1, at) })
  }
  return calls
}

/** Whether the shim counts the call and can fail it. */
export const canFail = ({ operation, file }: Call): boolean =>
  file !== MARKS_FILE && (operation === 'write' || operation === 'truncate' || operation === 'sync')
