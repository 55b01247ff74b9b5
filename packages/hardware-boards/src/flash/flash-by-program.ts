/** Flashes boards by programs of the system, avrdude and OpenOCD, in the sandbox and with access to the board's device alone. */
import { AppError, type Host, type SpawnResult, unconfinedNote } from '@sluice/sdk'
import { plainText } from '../protocol/frame.ts'

const FLASH_MS = 180_000
const OUTPUT_BYTES_MAX = 65_536
const PATH_DEFAULT = '/usr/local/bin:/usr/bin:/bin'
const REASON_CHARS_MAX = 300
/** Limits an output line that never ends. */
const LINE_CHARS_MAX = 1000

export interface Flasher {
  readonly program: string
  readonly args: readonly string[]
  /** See `SandboxPolicy.devices`. */
  readonly devices: readonly string[]
  /** The command that installs the program. */
  readonly install: string
}

const AVR_PARTS: Readonly<Record<string, { readonly part: string; readonly loader: string }>> = {
  board_b: { part: 'm328p', loader: 'arduino' },
  board_b_mega: { part: 'm2560', loader: 'wiring' },
}

/** Returns undefined for a board whose boot loader avrdude does not support. */
export function avrdude(board: string, port: string, image: string): Flasher | undefined {
  const avr = AVR_PARTS[board]
  if (!avr) return undefined
  return {
    program: 'avrdude',
    args: ['-p', avr.part, '-c', avr.loader, '-P', port, '-b', '115200', '-D', '-U', `flash:w:${image}:i`],
    devices: [port],
    install: 'apt-get install avrdude',
  }
}

/**
 * Flashes through the debug probe on the board: the probe of this serial number, or the only one that is connected. Throws
 * `invalid_request` for a path that OpenOCD's command language would misread.
 */
export function openocd(image: string, serialNumber?: string | null): Flasher {
  if (/[{}\\]/.test(image)) throw new AppError('invalid_request', `OpenOCD takes no path with braces or backslashes: ${image}`)
  // A raw binary contains no addresses; 0x08000000 is the start of flash.
  const where = image.endsWith('.bin') ? ' 0x08000000' : ''
  const which = serialNumber && /^[0-9A-Za-z]+$/.test(serialNumber) ? ['-c', `adapter serial ${serialNumber}`] : []
  return {
    program: 'openocd',
    args: ['-f', 'interface/stlink.cfg', ...which, '-f', 'target/stm32f4x.cfg', '-c', `program {${image}} verify reset exit${where}`],
    devices: ['/dev/bus/usb'],
    install: 'apt-get install openocd',
  }
}

/**
 * Runs the program and reports each line of its output. Throws `unavailable` when the program is missing or fails, with its
 * last lines, `upstream_timeout`, and `aborted`.
 */
export async function flashByProgram(
  { spawn }: Host,
  { program, args, devices, install }: Flasher,
  signal: AbortSignal,
  report: (line: string) => void,
): Promise<void> {
  const lines = lineReporter(report)
  const result = await spawn({
    file: program,
    args: [...args],
    cwd: '/',
    env: { PATH: process.env.PATH || PATH_DEFAULT, LANG: 'C.UTF-8' },
    policy: { writable: [], network: false, devices },
    timeoutMs: FLASH_MS,
    outputBytesMax: OUTPUT_BYTES_MAX,
    signal,
    onOutput: lines.take,
  }).catch((cause: unknown) => {
    if (cause instanceof AppError && cause.code === 'not_found')
      throw new AppError('unavailable', `${program} is not installed: ${install}`, { cause })
    throw cause
  })
  lines.end()
  const note = unconfinedNote(result)
  if (note !== '') report(`${program}: ${note}`)
  if (signal.aborted) throw new AppError('aborted', 'Flashing was aborted: flash the board again')
  if (result.timedOut) throw new AppError('upstream_timeout', `${program} took longer than ${FLASH_MS / 1000} s: flash the board again`)
  // A sandbox may report a missing program by this exit code.
  if (result.exitCode === 127) throw new AppError('unavailable', `${program} is not installed: ${install}`)
  if (result.exitCode !== 0) throw new AppError('unavailable', `${program} failed: ${lastLines(result)}`)
}

/** Reports whole lines, because the programs write their progress bars character by character. */
function lineReporter(report: (line: string) => void) {
  const partial = { stdout: '', stderr: '' }
  const reportText = (line: string): void => {
    const text = plainText(line)
    if (text !== '') report(text)
  }
  return {
    take(stream: keyof typeof partial, text: string): void {
      const lines = (partial[stream] + text).split(/[\r\n]+/)
      partial[stream] = (lines.pop() ?? '').slice(0, LINE_CHARS_MAX)
      for (const line of lines) reportText(line)
    },
    end(): void {
      for (const line of Object.values(partial)) reportText(line)
    },
  }
}

const lastLines = ({ stdout, stderr, exitCode }: SpawnResult): string =>
  (
    `${stdout}\n${stderr}`
      .trim()
      .split(/[\r\n]+/)
      .slice(-3)
      .join('; ') || `exit code ${exitCode}`
  ).slice(-REASON_CHARS_MAX)
