/** In the guest: a GPIO chip with any label, size and line names. Tests drive its inputs and read its outputs. Module: `gpio-sim`. */
import { mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setAttribute } from './guest-files.ts'

/** The label and lines of a chip. */
export interface GpioChipIdentity {
  /** The kernel's label, such as `pinctrl-bcm2711`. */
  readonly label: string
  readonly lines: number
  /** Line names by line number. */
  readonly names?: Readonly<Record<number, string>>
}

/** A chip whose lines a test drives and reads. */
export interface GpioChip {
  /** `/dev/gpiochip<n>` */
  readonly path: string
  /** Sets the level that an input line reads. */
  drive(line: number, level: 0 | 1): Promise<void>
  /** Reads the level of an input or output line. */
  level(line: number): Promise<0 | 1>
}

const CHIPS = '/sys/kernel/config/gpio-sim'

/** Creates a chip and activates it. */
export async function createGpioChip({ label, lines, names = {} }: GpioChipIdentity): Promise<GpioChip> {
  const chip = join(CHIPS, `chip${(await readdir(CHIPS)).length}`)
  const bank = join(chip, 'bank0')
  await mkdir(chip)
  await mkdir(bank)
  await setAttribute(join(bank, 'label'), label)
  await setAttribute(join(bank, 'num_lines'), String(lines))
  for (const [line, name] of Object.entries(names)) {
    await mkdir(join(bank, `line${line}`))
    await setAttribute(join(bank, `line${line}/name`), name)
  }
  await setAttribute(join(chip, 'live'), '1')
  const read = async (...path: string[]): Promise<string> => (await readFile(join(...path), 'utf8')).trim()
  const name = await read(bank, 'chip_name')
  const device = join('/sys/devices/platform', await read(chip, 'dev_name'), name)
  return {
    path: join('/dev', name),
    drive: (line, level) => setAttribute(join(device, `sim_gpio${line}/pull`), level === 1 ? 'pull-up' : 'pull-down'),
    level: async (line) => ((await read(device, `sim_gpio${line}/value`)) === '1' ? 1 : 0),
  }
}
