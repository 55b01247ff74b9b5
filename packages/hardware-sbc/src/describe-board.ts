/** Describes the board: to the model in the system prompt, and to operators in `<data-dir>/hardware/devices/sbc0.md`. */
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { SbcBoard } from './detect-board.ts'
import { PIN_RULES } from './pin-rules.ts'

export interface SystemInfo {
  readonly hostname: string
  /** The first address that other machines can reach; null without one. */
  readonly ip: string | null
  /** The network interface of that address. */
  readonly interface: string | null
  readonly wifiInterface: string | null
  readonly ramTotalMb: number
  readonly ramFreeMb: number
  readonly cpuCelsius: number | null
}

/** Returns the board's part of the system prompt. */
export function boardPrompt({ model, fullName }: SbcBoard, info: SystemInfo): string {
  const facts = [
    `host name ${info.hostname}`,
    info.ip === null ? 'no network' : `IP ${info.ip} (${info.interface})`,
    `RAM ${info.ramFreeMb} of ${info.ramTotalMb} MB free`,
    ...(info.cpuCelsius === null ? [] : [`CPU ${info.cpuCelsius} °C`]),
  ]
  return [
    `You run on a single-board computer, model ${model.name} (${fullName}), device sbc0: ${facts.join(', ')}.`,
    'Access its pins only with gpio_sbc_write, gpio_sbc_read and gpio_sbc_blink.',
    ...PIN_RULES,
  ].join('\n')
}

const deviceProfile = ({ model, fullName }: SbcBoard): string => `# sbc0: ${fullName}

Sluice writes this file at its start and overwrites changes.

- Model: ${model.name}
- GPIO chip: ${model.chip.label}, ${model.chip.lines} lines
- Activity LED: GPIO ${model.ledGpio}, available as the pin \`led\`
- Tools: \`gpio_sbc_write\`, \`gpio_sbc_read\`, \`gpio_sbc_blink\`, \`sbc_system_info\`

## Pins

${PIN_RULES.map((rule) => `- ${rule}`).join('\n')}
`

/** Replaces the file as a whole, and only when its text changed, to spare the SD card. */
export async function writeDeviceProfile(dataDir: string, board: SbcBoard): Promise<void> {
  const folder = join(dataDir, 'hardware', 'devices')
  const file = join(folder, 'sbc0.md')
  const text = deviceProfile(board)
  if ((await readFile(file, 'utf8').catch(() => undefined)) === text) return
  await mkdir(folder, { recursive: true })
  const draft = join(folder, `.sbc0.md.${process.pid}`)
  try {
    await writeFile(draft, text)
    await rename(draft, file)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}
