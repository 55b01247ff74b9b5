/** Recognizes the supported single-board computers by the model in their device tree. */
import { open } from 'node:fs/promises'
import { join } from 'node:path'

export interface SbcModel {
  readonly name: '3B' | '3B+' | '4B' | '5' | 'Zero 2W'
  /** Matches the model name in the device tree, with or without a revision. */
  readonly pattern: RegExp
  /** The GPIO chip of the header. It is found by label and size, because its number differs between kernels. */
  readonly chip: { readonly label: string; readonly lines: number }
  /** The GPIO number of the activity LED. On the model 5 the LED is on another chip. */
  readonly ledGpio: number
  /** The device file that exists while the serial port is on the header. */
  readonly serialPort: string
}

const BCM2835 = { label: 'pinctrl-bcm2835', lines: 54 } as const
const SERIAL0 = '/dev/serial0'

const MODELS: readonly SbcModel[] = [
  {
    name: '3B',
    pattern: /^Raspberry Pi 3 Model B(?: Rev \d+\.\d+)?$/,
    chip: BCM2835,
    ledGpio: 47,
    serialPort: SERIAL0,
  },
  {
    name: '3B+',
    pattern: /^Raspberry Pi 3 Model B(?:\+| Plus)(?: Rev \d+\.\d+)?$/,
    chip: BCM2835,
    ledGpio: 47,
    serialPort: SERIAL0,
  },
  {
    name: '4B',
    pattern: /^Raspberry Pi 4 Model B(?: Rev \d+\.\d+)?$/,
    chip: { label: 'pinctrl-bcm2711', lines: 58 },
    ledGpio: 42,
    serialPort: SERIAL0,
  },
  {
    name: '5',
    pattern: /^Raspberry Pi 5 Model B(?: Rev \d+\.\d+)?$/,
    chip: { label: 'pinctrl-rp1', lines: 54 },
    ledGpio: 9,
    serialPort: '/dev/ttyAMA0',
  },
  {
    name: 'Zero 2W',
    pattern: /^Raspberry Pi Zero 2 ?W(?: Rev \d+\.\d+)?$/,
    chip: BCM2835,
    ledGpio: 29,
    serialPort: SERIAL0,
  },
]

export interface SbcBoard {
  readonly model: SbcModel
  /** The full name in the device tree, with the revision. */
  readonly fullName: string
}

const MODEL_FILES = ['proc/device-tree/model', 'sys/firmware/devicetree/base/model']
const MODEL_BYTES_MAX = 256

/** Returns the board; undefined on any other machine. `root` is `/` except in tests. */
export async function detectBoard(root: string): Promise<SbcBoard | undefined> {
  for (const file of MODEL_FILES) {
    const fullName = await readModel(join(root, file))
    if (fullName === undefined) continue
    const model = MODELS.find(({ pattern }) => pattern.test(fullName))
    return model && { model, fullName }
  }
  return undefined
}

/** Texts of a device tree end with a NUL. Returns undefined when the file cannot be read. */
async function readModel(path: string): Promise<string | undefined> {
  try {
    await using file = await open(path)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(MODEL_BYTES_MAX), 0, MODEL_BYTES_MAX, 0)
    return buffer.toString('utf8', 0, bytesRead).replace(/[\0\n].*$/s, '')
  } catch {
    return undefined
  }
}
