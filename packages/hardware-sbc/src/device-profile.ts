/** `<data-dir>/hardware/devices/sbc0.md`: what this board is, for people and for the agent. */
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { SbcBoard } from './detect-board.ts'
import { PIN_RULES } from './pin-rules.ts'

export const deviceProfile = ({ model, fullName }: SbcBoard): string => `# sbc0: ${fullName}

Sluice writes this file at its start; changes to it are lost.

- Model: ${model.name}
- GPIO chip: ${model.chip.label}, ${model.chip.lines} lines
- Activity LED: GPIO ${model.ledGpio}, reached as the pin \`led\`
- Tools: \`gpio_sbc_write\`, \`gpio_sbc_read\`, \`gpio_sbc_blink\`, \`sbc_system_info\`

## Pins

${PIN_RULES.map((rule) => `- ${rule}`).join('\n')}
`

/** Whole or not at all, and only where it says something else than before: an SD card wears out. */
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
