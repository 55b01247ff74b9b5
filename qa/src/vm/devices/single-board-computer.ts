/** In the guest: what a program looks for on a single-board computer: its model, its GPIO chip, its temperature. Module: `gpio-sim`. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createGpioChip, type GpioChip } from './gpio-chip.ts'
import { coverFolder } from './guest-files.ts'

export interface SingleBoardComputer {
  readonly gpio: GpioChip
}

const DEVICE_TREE = '/sys/firmware/devicetree/base'
const THERMAL = '/sys/class/thermal'
const HEADER_LINES = 28

/** As the models call it that have it; a Pi 5's is behind a chip of its own. */
const CHIP_OF: readonly (readonly [model: string, label: string, lines: number])[] = [
  ['Pi 5', 'pinctrl-rp1', 54],
  ['Pi 4', 'pinctrl-bcm2711', 58],
  ['', 'pinctrl-bcm2835', 54],
]

/**
 * `model` as the device tree has it: `Raspberry Pi 4 Model B Rev 1.4`. It stands in `/sys/firmware/devicetree/base/model`,
 * with the NUL at its end; there is no `/proc/device-tree` in this kernel. Once in a machine.
 */
export async function becomeSingleBoardComputer(model: string, temperatureMilliCelsius = 48_312): Promise<SingleBoardComputer> {
  await coverFolder('/sys/firmware')
  await mkdir(DEVICE_TREE, { recursive: true })
  await writeFile(join(DEVICE_TREE, 'model'), `${model}\0`)
  await coverFolder(THERMAL)
  await mkdir(join(THERMAL, 'thermal_zone0'))
  await writeFile(join(THERMAL, 'thermal_zone0/type'), 'cpu-thermal\n')
  await writeFile(join(THERMAL, 'thermal_zone0/temp'), `${temperatureMilliCelsius}\n`)
  const [, label, lines] = CHIP_OF.find(([name]) => model.includes(name)) ?? ['', 'pinctrl-bcm2835', HEADER_LINES]
  const names = Object.fromEntries(Array.from({ length: HEADER_LINES }, (_, line) => [line, lineName(line)]))
  return { gpio: await createGpioChip({ label, lines, names }) }
}

const lineName = (line: number): string => ['ID_SDA', 'ID_SCL'][line] ?? `GPIO${line}`
