/** The steps of the READMEs of the channels; `scripts/channel-guides.mjs` reads them when the page is built. */
declare module 'virtual:channel-guides' {
  export interface Way {
    /** Tells the ways of a channel apart; empty where there is one. */
    readonly title: string
    /** The section of the configuration. */
    readonly section: string
    /** The keys of the example of the README. */
    readonly keys: readonly string[]
    /** Markdown, in which `<public url>` is replaced by the address of the daemon. */
    readonly steps: readonly string[]
    /** The index of the step at which the keys are saved. */
    readonly saving: number
  }
  export const GUIDES: Readonly<Record<string, readonly Way[] | undefined>>
}
