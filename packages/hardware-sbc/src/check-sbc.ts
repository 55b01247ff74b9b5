/** What `sluice doctor` says of the board: its model, its GPIO chip, and the permissions. */
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError, errorText, type Finding } from '@sluice/sdk'
import { ledFolder } from './activity-led.ts'
import { detectBoard } from './detect-board.ts'
import { findChip } from './header-pins.ts'
import type { SbcModel } from './models.ts'
import type { Outside } from './sbc.ts'

export async function checkSbc({ root, openGpio }: Outside): Promise<Finding[]> {
  const board = await detectBoard(root)
  if (!board) return [{ status: 'ok', detail: 'this machine is no supported single-board computer; its tools stay away' }]
  return [
    { status: 'ok', detail: `model ${board.model.name}: ${board.fullName}` },
    await checkChip(openGpio, board.model),
    await checkLed(root),
  ]
}

async function checkChip(openGpio: Outside['openGpio'], model: SbcModel): Promise<Finding> {
  try {
    const { chip } = await findChip(openGpio, model)
    return { status: 'ok', detail: `${model.chip.label} with ${model.chip.lines} lines is ${chip}` }
  } catch (error) {
    const isForbidden = error instanceof AppError && error.code === 'forbidden'
    const fix = isForbidden
      ? "run 'sudo usermod -aG gpio USER' for the daemon's user, and start the daemon anew"
      : 'install what the text names, or a kernel of 5.10 or newer that knows the board'
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
