/** Flashes boards whose loader a program of the system speaks: avrdude and OpenOCD, in the sandbox, with the board's device alone. */
import { AppError, type Host, type SpawnResult, unconfinedNote } from '@sluice/sdk'
import { plainText } from '../protocol/frame.ts'

const FLASH_MS = 180_000
const OUTPUT_BYTES_MAX = 65_536
const PATH_DEFAULT = '/usr/local/bin:/usr/bin:/bin'
const REASON_CHARS_MAX = 300
/** Of a line that does not end. */
const LINE_CHARS_MAX = 1000

export interface Flasher {
  readonly program: string
  readonly args: readonly string[]
  /** See `SandboxPolicy.devices`. */
  readonly devices: readonly string[]
  /** How to get the program. */
  readonly install: string
}

const AVR_PARTS: Readonly<Record<string, { readonly part: string; readonly loader: string }>> = {
  board_b: { part: 'm328p', loader: 'arduino' },
  board_b_mega: { part: 'm2560', loader: 'wiring' },
}

/** Undefined: no board whose boot loader avrdude speaks. */
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
 * Through the debugger that is on the board: the one of that serial number, else the only one there is. Throws
 * `invalid_request` for a path that its language would take apart.
 */
export function openocd(image: string, serialNumber?: string | null): Flasher {
  if (/[{}\\]/.test(image)) throw new AppError('invalid_request', `OpenOCD takes no path with braces or backslashes: ${image}`)
  // A loaded binary has no addresses of its own; flash begins there.
  const where = image.endsWith('.bin') ? ' 0x08000000' : ''
  const which = serialNumber && /^[0-9A-Za-z]+$/.test(serialNumber) ? ['-c', `adapter serial ${serialNumber}`] : []
  return {
    program: 'openocd',
    args: ['-f', 'interface/stlink.cfg', ...which, '-f', 'target/stm32f4x.cfg', '-c', `program {${image}} verify reset exit${where}`],
    devices: ['/dev/bus/usb'],
    install: 'apt-get install openocd',
  }
}

/** Throws `unavailable` when the program is missing or does not succeed, with its last words; `upstream_timeout`; `aborted`. */
export async function flashByProgram(
  { spawn }: Pick<Host, 'spawn'>,
  { program, args, devices, install }: Flasher,
  { signal, say }: { readonly signal: AbortSignal; readonly say: (line: string) => void },
): Promise<void> {
  const told = tellLines(say)
  const result = await spawn({
    file: program,
    args: [...args],
    cwd: '/',
    env: { PATH: process.env.PATH || PATH_DEFAULT, LANG: 'C.UTF-8' },
    policy: { writable: [], network: false, devices },
    timeoutMs: FLASH_MS,
    outputBytesMax: OUTPUT_BYTES_MAX,
    signal,
    onOutput: told.take,
  }).catch((cause: unknown) => {
    if (cause instanceof AppError && cause.code === 'not_found')
      throw new AppError('unavailable', `${program} is not installed: ${install}`, { cause })
    throw cause
  })
  told.end()
  const note = unconfinedNote(result)
  if (note !== '') say(`${program}: ${note}`)
  if (signal.aborted) throw new AppError('aborted', 'Flashing was aborted: flash the board again')
  if (result.timedOut) throw new AppError('upstream_timeout', `${program} took longer than ${FLASH_MS / 1000} s: flash the board again`)
  // A sandbox may start a program that is not there, and say so in its place.
  if (result.exitCode === 127) throw new AppError('unavailable', `${program} is not installed: ${install}`)
  if (result.exitCode !== 0) throw new AppError('unavailable', `${program} failed: ${lastWords(result)}`)
}

/** Each line once it has ended: programs write a bar of progress character by character. */
function tellLines(say: (line: string) => void) {
  const begun = { stdout: '', stderr: '' }
  const tell = (line: string): void => {
    const text = plainText(line)
    if (text !== '') say(text)
  }
  return {
    take(stream: keyof typeof begun, text: string): void {
      const lines = (begun[stream] + text).split(/[\r\n]+/)
      begun[stream] = (lines.pop() ?? '').slice(0, LINE_CHARS_MAX)
      for (const line of lines) tell(line)
    },
    end(): void {
      for (const line of Object.values(begun)) tell(line)
    },
  }
}

const lastWords = ({ stdout, stderr, exitCode }: SpawnResult): string =>
  (
    `${stdout}\n${stderr}`
      .trim()
      .split(/[\r\n]+/)
      .slice(-3)
      .join('; ') || `exit code ${exitCode}`
  ).slice(-REASON_CHARS_MAX)
