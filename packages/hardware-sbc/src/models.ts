/** The single-board computers whose pins are known, by the very words of their device trees (§2.7 rule 5). */

export interface SbcModel {
  readonly name: '3B' | '3B+' | '4B' | '5' | 'Zero 2W'
  readonly matches: RegExp
  /** The chip of the header's pins, by what it calls itself: its number differs from one kernel to the next. */
  readonly chip: { readonly label: string; readonly lines: number }
  /** The GPIO of the activity LED; the 5 has it on a chip of its own. */
  readonly ledGpio: number
  /** There while the serial port is on the header. */
  readonly serialPort: string
}

const exactly = (model: string): RegExp => new RegExp(`^Raspberry Pi ${model}(?: Rev \\d+\\.\\d+)?$`)

const BCM2835 = { label: 'pinctrl-bcm2835', lines: 54 } as const
const SERIAL0 = '/dev/serial0'

export const MODELS: readonly SbcModel[] = [
  { name: '3B', matches: exactly('3 Model B'), chip: BCM2835, ledGpio: 47, serialPort: SERIAL0 },
  { name: '3B+', matches: exactly(String.raw`3 Model B(?:\+| Plus)`), chip: BCM2835, ledGpio: 47, serialPort: SERIAL0 },
  { name: '4B', matches: exactly('4 Model B'), chip: { label: 'pinctrl-bcm2711', lines: 58 }, ledGpio: 42, serialPort: SERIAL0 },
  { name: '5', matches: exactly('5 Model B'), chip: { label: 'pinctrl-rp1', lines: 54 }, ledGpio: 9, serialPort: '/dev/ttyAMA0' },
  { name: 'Zero 2W', matches: exactly('Zero 2 ?W'), chip: BCM2835, ledGpio: 29, serialPort: SERIAL0 },
]
