/** Reads a chip through an OpenOCD that is started in the sandbox for one reading and ends with it. */
import { AppError, type Host, type SpawnResult, unconfinedNote } from '@sluice/sdk'
import type { Block, ChipReader, Reading } from '../chip-reader.ts'
import { parseReadings, readExpression } from './read-script.ts'

const OUTPUT_BYTES_MAX = 65_536
const REASON_CHARS_MAX = 300
const SOURCE_CHARS_MAX = 120
/** Probes on USB and on USB HID. The hidraw nodes are numbered in the order they were plugged in, so the first eight are allowed. */
const DEVICES = ['/dev/bus/usb', ...Array.from({ length: 8 }, (_, index) => `/dev/hidraw${index}`)]
const PATH_DEFAULT = '/usr/local/bin:/usr/bin:/bin'

export interface OpenOcdProgram {
  /** The name or path of the program. */
  readonly program: string
  readonly args: readonly string[]
  /** Whether it may use the network. */
  readonly network: boolean
}

export class OpenOcdProcessReader implements ChipReader {
  readonly #host: Host
  readonly #openocd: OpenOcdProgram
  readonly #timeoutMs: number
  #source: string

  constructor(host: Host, openocd: OpenOcdProgram, timeoutMs: number) {
    this.#host = host
    this.#openocd = openocd
    this.#timeoutMs = timeoutMs
    this.#source = nameOf(openocd)
  }

  /** After a reading it also says whether the program ran without a sandbox. */
  get source(): string {
    return this.#source
  }

  async read(blocks: readonly Block[], signal: AbortSignal): Promise<readonly Reading[]> {
    if (signal.aborted) throw aborted()
    const result = await this.#run(blocks, signal)
    if (signal.aborted) throw aborted()
    this.#source = `${nameOf(this.#openocd)} ${unconfinedNote(result)}`.trimEnd()
    return parseReadings(outputOf(result, this.#openocd.program, this.#timeoutMs), blocks)
  }

  async #run(blocks: readonly Block[], signal: AbortSignal): Promise<SpawnResult> {
    const { program, args, network } = this.#openocd
    try {
      return await this.#host.spawn({
        file: program,
        args: [...args, ...scriptArgs(blocks)],
        // OpenOCD looks for its configuration in the current folder first, so that must not be writable by other users.
        cwd: '/',
        env: { PATH: process.env.PATH || PATH_DEFAULT, LANG: 'C.UTF-8' },
        policy: { writable: [], network, devices: DEVICES },
        timeoutMs: this.#timeoutMs,
        outputBytesMax: OUTPUT_BYTES_MAX,
        signal,
      })
    } catch (cause) {
      throw cause instanceof AppError && cause.code === 'not_found' ? cannotStart(program, cause) : cause
    }
  }
}

const aborted = (): AppError => new AppError('aborted', 'The reading was aborted')

const nameOf = ({ args }: OpenOcdProgram): string => `OpenOCD (${args.join(' ').slice(0, SOURCE_CHARS_MAX)})`

/** The script opens no port, reads the blocks and ends the program. */
const scriptArgs = (blocks: readonly Block[]): string[] => [
  ...['gdb_port disabled', 'tcl_port disabled', 'telnet_port disabled', 'init'].flatMap((command) => ['-c', command]),
  ...blocks.flatMap((block, index) => ['-c', `echo [${readExpression(block, index)}]`]),
  '-c',
  'shutdown',
]

/** Returns the output. Throws `unavailable` with OpenOCD's own reason when it failed, and `upstream_timeout`. */
function outputOf({ exitCode, timedOut, stdout, stderr }: SpawnResult, program: string, timeoutMs: number): string {
  const output = `${stdout}\n${stderr}`
  if (timedOut) throw new AppError('upstream_timeout', `${program} took longer than ${timeoutMs / 1000} s`)
  if (!output.includes('Open On-Chip Debugger')) throw cannotStart(program, output)
  if (exitCode !== 0) throw new AppError('unavailable', `OpenOCD cannot reach the chip: ${reasonIn(output)}`)
  return output
}

function cannotStart(program: string, cause: unknown): AppError {
  const configure = 'or set `gdb`, `openocd_tcl` or `openocd_program` in [peripherals.probe]'
  return new AppError('unavailable', `${program} cannot be started: install OpenOCD (apt-get install openocd), ${configure}`, { cause })
}

function reasonIn(output: string): string {
  const errors = [...output.matchAll(/(?:^|: )Error: (.*)$/gm)].map(([, text = '']) => text)
  const reason = errors.slice(0, 2).join('; ') || output.trim().split('\n').at(-1) || 'it gives no reason'
  const isDenied = /LIBUSB_ERROR_ACCESS|permission denied/i.test(output)
  return `${reason.slice(0, REASON_CHARS_MAX)}${isDenied ? ' (this user may not open the probe: install the udev rules of OpenOCD)' : ''}`
}
