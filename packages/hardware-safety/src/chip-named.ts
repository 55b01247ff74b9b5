/** The GPIO chip that the settings of a robot name. */
import type { Gpio } from '@sluice/hardware'
import { AppError } from '@sluice/sdk'

/** By its path, or by its label, which stays the same when chips are counted anew. Throws `not_found` where no chip has it. */
export async function chipNamed(gpio: Pick<Gpio, 'chips'>, name: string): Promise<string> {
  if (name.startsWith('/dev/')) return name
  const chips = await gpio.chips()
  const chip = chips.find(({ label }) => label === name)
  if (chip) return chip.path
  const known = chips.map(({ label, path }) => `${label} (${path})`).join(', ') || 'none'
  throw new AppError('not_found', `there is no GPIO chip '${name}'; there is: ${known}`)
}
