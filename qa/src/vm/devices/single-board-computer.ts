/** In the guest: the model, GPIO chip and temperature of a single-board computer. Module: `gpio-sim`. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createGpioChip, type GpioChip } from './gpio-chip.ts'
import { coverFolder } from './guest-files.ts'

/** The simulated parts of the board. */
export interface SingleBoardComputer {
  readonly gpio: GpioChip
}

const DEVICE_TREE = '/sys/firmware/devicetree/base'
const THERMAL = '/sys/class/thermal'
const HEADER_LINES = 28

/** The GPIO chip of each model; the chip of a Pi 5 is a separate controller. */
const CHIP_OF: readonly (readonly [model: string, label: string, lines: number])[] = [
  ['Pi 5', 'pinctrl-rp1', 54],
  ['Pi 4', 'pinctrl-bcm2711', 58],
  ['', 'pinctrl-bcm2835', 54],
]

/**
 * `model` is the device tree's text, such as `Raspberry Pi 4 Model B Rev 1.4`. It is written to
 * `/sys/firmware/devicetree/base/model` with a final NUL; this kernel has no `/proc/device-tree`. Call it once per machine.
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
