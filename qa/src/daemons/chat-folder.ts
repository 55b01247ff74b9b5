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
  /** True: `ada` of each chat is an operator, who decides commands without a sandbox. Default: false. */
  readonly isAdaOperator?: boolean
  /** Additional sections. */
  readonly toml?: string
  /** Texts of files by their path in the workspace. */
  readonly files?: Readonly<Record<string, string>>
}

/** Faults are part of the tests, so their warnings are not logged. */
const BASE = '[log]\nlevel = "error"\n[gateway]\nrequire_pairing = false\n'

/** The caller removes the directory. */
export function chatFolder({ chats, keys = {}, isAdaOperator = false, toml = '', files = {} }: ChatFolderOptions): {
  dataDir: string
  configFile: string
} {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-chats-'))
  const configFile = join(dataDir, 'config.toml')
  const sections = chats.map(({ name, config, people }) => sectionToml(name, { ...config, ...keys }, isAdaOperator ? [people.ada] : []))
  writeFileSync(configFile, [BASE, toml, ...sections].join('\n'), { mode: 0o600 })
  for (const [path, text] of Object.entries(files)) {
    const file = join(dataDir, 'workspace', path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  return { dataDir, configFile }
}
