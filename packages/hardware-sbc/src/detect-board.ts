/** Which board this machine is, by its device tree. */
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { MODELS, type SbcModel } from './models.ts'

export interface SbcBoard {
  readonly model: SbcModel
  /** As the device tree has it, with the revision. */
  readonly fullName: string
}

const MODEL_FILES = ['proc/device-tree/model', 'sys/firmware/devicetree/base/model']
const MODEL_BYTES_MAX = 256

/** `root` is `/`, but in tests. Undefined: it is another machine, or one that does not say. */
export async function detectBoard(root: string): Promise<SbcBoard | undefined> {
  for (const file of MODEL_FILES) {
    const fullName = await firstText(join(root, file))
    if (fullName === undefined) continue
    const model = MODELS.find(({ matches }) => matches.test(fullName))
    return model && { model, fullName }
  }
  return undefined
}

/** Up to the NUL that ends a device tree's texts. */
async function firstText(path: string): Promise<string | undefined> {
  try {
    await using file = await open(path)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(MODEL_BYTES_MAX), 0, MODEL_BYTES_MAX, 0)
    return buffer.toString('utf8', 0, bytesRead).replace(/[\0\n].*$/s, '')
  } catch {
    return undefined
  }
}
