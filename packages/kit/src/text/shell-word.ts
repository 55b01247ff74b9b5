/** Returns a name that another person chose as one word of a shell, so that a copied command runs nothing else. */
export const shellWord = (name: string): string => (/^[\w.-]+$/.test(name) ? name : `'${name.replaceAll("'", String.raw`'\''`)}'`)
