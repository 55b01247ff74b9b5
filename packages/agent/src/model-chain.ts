/** The configured model and its fallbacks. */
import type { LanguageModel } from '@sluice/sdk'

export interface ModelChain {
  /** `provider:model` of each entry, for status; nothing is loaded. */
  readonly labels: readonly { readonly provider: string; readonly model: string }[]
  /** Loads the entry on first use and keeps it; a failed load is tried again next time. */
  load(index: number): Promise<LanguageModel>
}
