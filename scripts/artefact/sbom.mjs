// Writes the software bill of materials of a build in the format CycloneDX 1.6. It has no time and no serial number, so that two
// builds of the same sources are equal.

/** Returns the package URL of an npm package. */
const purlOf = (name, version) => `pkg:npm/${name.replace(/^@/, '%40')}@${version}`

const nameOf = (key) => key.slice(0, key.lastIndexOf('@'))

/** Returns the hash of a Subresource Integrity text such as `sha512-…` in the form of CycloneDX. */
function hashesOf(integrity) {
  const [, algorithm, base64] = /^sha(\d+)-(.+)$/.exec(integrity ?? '') ?? []
  return algorithm ? { hashes: [{ alg: `SHA-${algorithm}`, content: Buffer.from(base64, 'base64').toString('hex') }] } : {}
}

function licencesOf(licence) {
  if (!licence) return {}
  return { licenses: [/[\s()]/.test(licence) ? { expression: licence } : { license: { id: licence } }] }
}

function component(key, { version, licence, integrity }, scope) {
  const name = nameOf(key)
  const [group, tail] = name.startsWith('@') ? name.split('/') : [undefined, name]
  const purl = purlOf(name, version)
  return {
    type: 'library',
    'bom-ref': purl,
    ...(group && { group }),
    name: tail,
    version,
    scope,
    ...hashesOf(integrity),
    ...licencesOf(licence),
    purl,
  }
}

const byRef = (a, b) => (a['bom-ref'] < b['bom-ref'] ? -1 : 1)

/**
 * Returns the bill of materials: `required` components are in the bundle, `optional` ones are loaded from its folder where they are
 * installed. `tree` is the layout of the optional packages, `roots` their names and versions.
 */
export function billOfMaterials({ version, license, profile, bundled, imported, roots, tree, integrityOf }) {
  const refOf = (key) => purlOf(nameOf(key), key.slice(nameOf(key).length + 1))
  const required = bundled.map((one) => component(one.key, { ...one, integrity: integrityOf(one.key) }, 'required'))
  const known = new Set(required.map((one) => one['bom-ref']))
  const locked = new Map([...tree.values()].map((one) => [one.key, one]))
  const optional = [...locked].map(([key, one]) => component(key, one, 'optional')).filter((one) => !known.has(one['bom-ref']))
  const own = purlOf('sluice', version)
  const edges = new Map([[own, [...imported, ...Object.entries(roots).map(([name, at]) => `${name}@${at}`)]]])
  for (const { key, dependsOn } of bundled) edges.set(refOf(key), dependsOn)
  for (const [key, { dependencies, optionalDependencies }] of locked)
    edges.set(
      refOf(key),
      Object.entries({ ...dependencies, ...optionalDependencies }).map(([name, at]) => `${name}@${at}`),
    )
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: {
        type: 'application',
        'bom-ref': own,
        name: 'sluice',
        version,
        ...licencesOf(license),
        purl: own,
        properties: [{ name: 'sluice:profile', value: profile }],
      },
    },
    components: [...required, ...optional].sort(byRef),
    dependencies: [...edges]
      .map(([ref, keys]) => ({ ref, dependsOn: [...new Set(keys.map(refOf))].sort() }))
      .sort((a, b) => (a.ref < b.ref ? -1 : 1)),
  }
}
