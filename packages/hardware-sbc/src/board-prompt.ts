/** What the model is told of the board at each turn. */
import type { SbcBoard } from './detect-board.ts'
import { PIN_RULES } from './pin-rules.ts'
import type { SystemInfo } from './system-info.ts'

export function boardPrompt({ model, fullName }: SbcBoard, info: SystemInfo): string {
  const facts = [
    `host name ${info.hostname}`,
    info.ip === null ? 'no network' : `IP ${info.ip} (${info.interface})`,
    `RAM ${info.ramFreeMb} of ${info.ramTotalMb} MB free`,
    ...(info.cpuCelsius === null ? [] : [`CPU ${info.cpuCelsius} °C`]),
  ]
  return [
    `You run on a single-board computer, model ${model.name} (${fullName}), device sbc0: ${facts.join(', ')}.`,
    'Its pins are reached by gpio_sbc_write, gpio_sbc_read and gpio_sbc_blink only.',
    ...PIN_RULES,
  ].join('\n')
}
