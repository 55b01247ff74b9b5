/** Creates folders that are costly to fill: the first process fills them, and they appear complete or not at all. */
import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Fills a draft and renames it to `folder`, unless the folder exists. Several processes may call it at once; the first one wins. */
export async function onceAndWhole(folder: string, fill: (draft: string) => Promise<void>): Promise<void> {
  if (await exists(folder)) return
  await mkdir(dirname(folder), { recursive: true })
  const draft = await mkdtemp(`${folder}.`)
  try {
    await fill(draft)
    await rename(draft, folder).catch(async (error: unknown) => {
      if (!(await exists(folder))) throw error
    })
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )
