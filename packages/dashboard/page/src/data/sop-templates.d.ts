/** The procedures of `examples/sops`, read when the page is built. */
declare module 'virtual:sop-templates' {
  export const TEMPLATES: readonly { readonly name: string; readonly toml: string; readonly md: string }[]
}
