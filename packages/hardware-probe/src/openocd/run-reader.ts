/** Reads a chip by an OpenOCD of one's own, started in the sandbox for one reading and gone with it. */
import { AppError, type Host, type SpawnResult, unconfinedNote } from '@sluice/sdk'
import type { Block, ChipReader } from '../chip-reader.ts'
import { parseReadings, readExpression } from './read-script.ts'

const OUTPUT_BYTES_MAX = 65_536
const REASON_CHARS_MAX = 300
const SOURCE_CHARS_MAX = 120
/** USB probes, and those on USB HID: hidraw nodes have numbers, of which these are looked for. */
const DEVICES = ['/dev/bus/usb', ...Array.from({ length: 8 }, (_, index) => `/dev/hidraw${index}`)]
const PATH_DEFAULT = '/usr/local/bin:/usr/bin:/bin'

export interface RunReaderOptions {
  readonly program: string
  readonly args: readonly string[]
  readonly network: boolean
  readonly timeoutMs: number
  readonly spawn: Host['spawn']
}

export function createRunReader({ program, args, network, timeoutMs, spawn }: RunReaderOptions): ChipReader {
  const name = `OpenOCD (${args.join(' ').slice(0, SOURCE_CHARS_MAX)})`
  let source = name
  return {
    get source() {
      return source
    },
    async read(blocks, signal) {
      if (signal.aborted) throw new AppError('aborted', 'The reading was aborted')
      const result = await spawn({
        file: program,
        args: [...args, ...scriptArgs(blocks)],
        // no folder anybody else may write: OpenOCD looks for its configuration there first
        cwd: '/',
        env: { PATH: process.env.PATH || PATH_DEFAULT, LANG: 'C.UTF-8' },
        policy: { writable: [], network, devices: DEVICES },
        timeoutMs,
        outputBytesMax: OUTPUT_BYTES_MAX,
        signal,
      }).catch((cause: unknown) => {
        throw cause instanceof AppError && cause.code === 'not_found' ? missing(program, cause) : cause
      })
      if (signal.aborted) throw new AppError('aborted', 'The reading was aborted')
      source = `${name} ${unconfinedNote(result)}`.trimEnd()
      return parseReadings(outputOf(result, program, timeoutMs), blocks)
    },
  }
}

/** It opens no port, and ends by itself. */
const scriptArgs = (blocks: readonly Block[]): string[] => [
  ...['gdb_port disabled', 'tcl_port disabled', 'telnet_port disabled', 'init'].flatMap((command) => ['-c', command]),
  ...blocks.flatMap((block, index) => ['-c', `echo [${readExpression(block, index)}]`]),
  '-c',
  'shutdown',
]

/** What it has printed. Throws `unavailable` with its own reason for one that could not do its work. */
function outputOf({ exitCode, timedOut, stdout, stderr }: SpawnResult, program: string, timeoutMs: number): string {
  const output = `${stdout}\n${stderr}`
  if (timedOut) throw new AppError('upstream_timeout', `${program} took longer than ${timeoutMs / 1000} s`)
  if (!output.includes('Open On-Chip Debugger')) throw missing(program, output)
  if (exitCode !== 0) throw new AppError('unavailable', `OpenOCD reaches no chip: ${reasonIn(output)}`)
  return output
}

function missing(program: string, cause: unknown): AppError {
  const configure = 'or set `gdb`, `openocd_tcl` or `openocd_program` in [peripherals.probe]'
  return new AppError('unavailable', `${program} does not start: install OpenOCD (apt-get install openocd), ${configure}`, { cause })
}

function reasonIn(output: string): string {
  const errors = [...output.matchAll(/(?:^|: )Error: (.*)$/gm)].map(([, text = '']) => text)
  const reason = errors.slice(0, 2).join('; ') || output.trim().split('\n').at(-1) || 'it says nothing'
  const isDenied = /LIBUSB_ERROR_ACCESS|permission denied/i.test(output)
  return `${reason.slice(0, REASON_CHARS_MAX)}${isDenied ? ' (this user may not open the probe: install the udev rules of OpenOCD)' : ''}`
}
