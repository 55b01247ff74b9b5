/** The configuration for editors over the API. The module that edits it is loaded at the first use. */
import type { ConfigSource } from '@sluice/config'
import type { ChangePreview, SettingChange, ShownConfig } from '@sluice/config/settings'

export interface Settings {
  shown(): Promise<ShownConfig>
  /** Resolves to the JSON Schema of the file. */
  schema(): Promise<object>
  /** Checks changes without saving them. */
  preview(changes: readonly SettingChange[]): Promise<ChangePreview>
  /** Makes all changes or none. Throws `conflict` when the file is not of this version. */
  save(changes: readonly SettingChange[], version: string): Promise<ChangePreview>
}

const load = () => import('@sluice/config/settings')

export const createSettings = (source: ConfigSource): Settings => ({
  shown: async () => (await load()).shownConfig(source),
  schema: async () => (await load()).shownSchema(source),
  preview: async (changes) => (await load()).previewChanges(source, changes),
  save: async (changes, version) => (await load()).saveChanges(source, changes, version),
})
