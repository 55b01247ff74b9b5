/** The values of a configuration section, by key, as in TOML. */
export type SectionValues = Readonly<Record<string, string | number | boolean | readonly string[]>>
