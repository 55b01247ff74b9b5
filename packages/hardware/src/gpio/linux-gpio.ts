/** GPIO lines through the character device of Linux 5.10 and newer, `/dev/gpiochipN`, without libgpiod or a daemon. */
import { type FileHandle, open, readdir } from 'node:fs/promises'
import { getSystemErrorName } from 'node:util'
import { AppError } from '@sluice/sdk'
import { checkDevicePath, isDevicePath } from '../device-path.ts'
import { loadNative, type Native } from '../native.ts'
import type { Gpio, GpioChip, GpioLineInfo, GpioLines, LineRequest } from './gpio.ts'
import { HeldLines } from './held-lines.ts'
import * as abi from './line-abi.ts'

const CHIPS_MAX = 64

/** Throws `unavailable` on other systems and when koffi is missing. The result itself needs no close; its lines do. */
export async function openGpio(): Promise<Gpio> {
  if (process.platform !== 'linux') throw new AppError('unavailable', 'GPIO lines are only available on Linux')
  const native = await loadNative()

  const onChip = async <Result>(path: string, work: (fd: number) => Result): Promise<Result> => {
    await checkDevicePath(path, 'gpio')
    const chip = await openChip(path)
    try {
      return work(chip.fd)
    } finally {
      await chip.close()
    }
  }

  return {
    async chips() {
      const found: GpioChip[] = []
      let refusal: unknown
      for (const path of await chipPaths()) {
        try {
          found.push(await onChip(path, (fd) => chipInfo(native, path, fd)))
        } catch (error) {
          refusal ??= error
        }
      }
      if (found.length === 0 && refusal !== undefined) throw refusal
      return found
    },
    line: (path, offset) => onChip(path, (fd) => lineInfo(native, path, fd, offset)),
    request: (path, request) => onChip(path, (fd) => requestLines(native, path, fd, request)),
  }
}

/** Lists the device nodes. Skips symbolic links, which some systems keep for old programs. */
async function chipPaths(): Promise<string[]> {
  const entries = await readdir('/dev', { withFileTypes: true })
  return entries
    .filter((entry) => entry.isCharacterDevice() && isDevicePath(`/dev/${entry.name}`, 'gpio'))
    .map(({ name }) => `/dev/${name}`)
    .sort(new Intl.Collator('en', { numeric: true }).compare)
    .slice(0, CHIPS_MAX)
}

async function openChip(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'r+')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'EACCES' || code === 'EPERM')
      throw new AppError(
        'forbidden',
        `No permission to open ${path}: add the daemon's user to the group that owns it (often gpio) and log in again`,
      )
    throw new AppError('unavailable', `${path} cannot be opened: ${message}`, { cause: error })
  }
}

function chipInfo(native: Native, path: string, fd: number): GpioChip {
  const info = abi.chipInfoBuffer()
  const answer = native.ioctl(fd, abi.GET_CHIP_INFO, info)
  if (answer < 0) throw failure(`${path} did not return its chip information`, answer)
  return abi.parseChipInfo(path, info)
}

function lineInfo(native: Native, path: string, fd: number, offset: number): GpioLineInfo {
  const { lines } = chipInfo(native, path, fd)
  if (!Number.isInteger(offset) || offset < 0 || offset >= lines)
    throw new AppError('invalid_request', `${path} has no line ${offset}; its lines are 0 to ${lines - 1}`)
  const info = abi.lineInfoBuffer(offset)
  const answer = native.ioctl(fd, abi.GET_LINE_INFO, info)
  if (answer < 0) throw failure(`${path} did not return the information of line ${offset}`, answer)
  return abi.parseLineInfo(info)
}

function requestLines(native: Native, path: string, fd: number, request: LineRequest): GpioLines {
  const { offsets, direction, levels, bias, watch } = request
  if (offsets.length === 0 || offsets.length > abi.LINES_MAX || new Set(offsets).size !== offsets.length)
    throw new AppError('invalid_request', `1 to ${abi.LINES_MAX} different lines can be requested at once`)
  if (levels && (direction !== 'output' || levels.length !== offsets.length))
    throw new AppError('invalid_request', '`levels` needs an output and one level for each line')
  if (direction !== 'input' && (bias || watch)) throw new AppError('invalid_request', '`bias` and `watch` need inputs')
  const infos = offsets.map((offset) => lineInfo(native, path, fd, offset))
  const buffer = abi.linesRequest(request)
  const answer = native.ioctl(fd, abi.GET_LINES, buffer)
  if (getError(answer) === 'EBUSY') {
    const held = infos.find(({ isUsed }) => isUsed)
    throw new AppError('conflict', `Line ${held?.offset ?? offsets.join(', ')} of ${path} is in use by ${held?.consumer || 'the kernel'}`)
  }
  if (answer < 0) throw failure(`The lines ${offsets.join(', ')} of ${path} cannot be requested`, answer)
  const lineFd = abi.lineFdOf(buffer)
  try {
    return new HeldLines(native, { path, fd: lineFd, request })
  } catch (error) {
    native.close(lineFd)
    throw error
  }
}

const getError = (answer: number): string => (answer < 0 ? getSystemErrorName(answer) : '')

function failure(what: string, answer: number): AppError {
  const code = getError(answer)
  if (code === 'ENOTTY') return new AppError('unavailable', `${what}: the kernel is older than Linux 5.10`)
  return new AppError('unavailable', `${what}: ${code}`)
}
