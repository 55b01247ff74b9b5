/** Makes the data directory of a daemon with chats. */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Chat } from '@sluice/testkit/chat'
import type { SectionValues } from '@sluice/testkit/section-values'
import { sectionToml } from './section-toml.ts'

export interface ChatFolderOptions {
  readonly chats: readonly Chat[]
  /** Additional keys for the section of each chat. */
  readonly keys?: SectionValues
  /** Additional sections. */
  readonly toml?: string
  /** Texts of files by their path in the workspace. */
  readonly files?: Readonly<Record<string, string>>
}

/** Faults are part of the tests, so their warnings are not logged. */
const BASE = '[log]\nlevel = "error"\n[gateway]\nrequire_pairing = false\n'

/** The caller removes the directory. */
export function chatFolder({ chats, keys = {}, toml = '', files = {} }: ChatFolderOptions): { dataDir: string; configFile: string } {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-chats-'))
  const configFile = join(dataDir, 'config.toml')
  writeFileSync(configFile, [BASE, toml, ...chats.map(({ name, config }) => sectionToml(name, { ...config, ...keys }))].join('\n'), {
    mode: 0o600,
  })
  for (const [path, text] of Object.entries(files)) {
    const file = join(dataDir, 'workspace', path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  return { dataDir, configFile }
}
