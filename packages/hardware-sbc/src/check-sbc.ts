/** The findings for `sluice doctor`: the board's model, its GPIO chip and its permissions. */
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError, errorText, type Finding } from '@sluice/sdk'
import { ledFolder } from './activity-led.ts'
import { detectBoard, type SbcModel } from './detect-board.ts'
import { findChip, type OpenGpio } from './header-pins.ts'
import type { Machine } from './sbc.ts'

export async function checkSbc({ root, openGpio }: Machine): Promise<Finding[]> {
  const board = await detectBoard(root)
  if (!board) return [{ status: 'ok', detail: 'this machine is not a supported single-board computer, so its tools are off' }]
  return [
    { status: 'ok', detail: `model ${board.model.name}: ${board.fullName}` },
    await checkChip(openGpio, board.model),
    await checkLed(root),
  ]
}

async function checkChip(openGpio: OpenGpio, model: SbcModel): Promise<Finding> {
  try {
    const { path } = await findChip(openGpio, model)
    return { status: 'ok', detail: `${model.chip.label} with ${model.chip.lines} lines is ${path}` }
  } catch (error) {
    const isForbidden = error instanceof AppError && error.code === 'forbidden'
    const fix = isForbidden
      ? "run 'sudo usermod -aG gpio USER' for the daemon's user, and restart the daemon"
      : 'install the package that the message names, or a kernel of 5.10 or newer that supports the board'
    return { status: 'fail', detail: errorText(error), fix }
  }
}

async function checkLed(root: string): Promise<Finding> {
  try {
    const folder = await ledFolder(root)
    await access(join(folder, 'trigger'), constants.W_OK)
    await access(join(folder, 'brightness'), constants.W_OK)
    return { status: 'ok', detail: `the activity LED is ${folder}` }
  } catch (error) {
    return { status: 'warn', detail: `the activity LED cannot be used: ${errorText(error)}`, fix: 'see the udev rule in docs/sbc.md' }
  }
}
