/** What a schema has against a document, in the product's own words: key, what is there, what belongs there. */
import { z } from 'zod';
import { nearest } from '../core/nearest.js';
import type { ConfigurationProblem } from './configurationError.js';

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/** Characters of a value that are shown of it. */
const SHOWN_LENGTH = 60;

/** Every problem, in the order of the schema. */
export function configProblems(
  schema: z.ZodType,
  document: unknown,
  issues: readonly Issue[],
): ConfigurationProblem[] {
  return issues.flatMap((issue) => {
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((name) => {
        const key = keyOf([...issue.path, name]);
        return { key, text: `${key} is no key${intended(schema, document, issue.path, name)}` };
      });
    }
    const key = keyOf(issue.path);
    return [
      { ...(key !== '' && { key }), text: `${key || 'the file'} ${objection(issue, document)}` },
    ];
  });
}

function keyOf(path: Path): string {
  return path.reduce<string>(
    (text, key) =>
      typeof key === 'number' ? `${text}[${key}]` : `${text}${text && '.'}${String(key)}`,
    '',
  );
}

function objection(
  issue: Exclude<Issue, { code: 'unrecognized_keys' }>,
  document: unknown,
): string {
  // What a rule of ours says is whole; it may be about a value that is not to be shown.
  if (issue.code === 'custom') return issue.message;
  const value = valueAt(document, issue.path);
  const expected = expectation(issue);
  if (value === undefined && issue.path.length > 0) {
    return issue.code === 'invalid_type' ? 'is required' : `is required: ${expected}`;
  }
  return `must be ${expected}, and is ${shown(value)}`;
}

/** Behind "must be". */
function expectation(issue: Issue): string {
  switch (issue.code) {
    case 'invalid_type':
      return typeNames[issue.expected] ?? issue.expected;
    case 'invalid_value':
      return oneOf(issue.values);
    case 'invalid_union':
      return oneOf('options' in issue ? (issue.options ?? []) : []);
    case 'too_small':
      if (issue.origin === 'string') return 'text that is not empty';
      return issue.origin === 'array'
        ? `a list of at least ${issue.minimum}`
        : `${issue.minimum} or more`;
    case 'too_big':
      return `${issue.maximum} or less`;
    default:
      return issue.message;
  }
}

const typeNames: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a whole number',
  int: 'a whole number',
  array: 'a list',
  object: 'a mapping of keys to values',
};

function oneOf(values: readonly unknown[]): string {
  const [last, ...others] = values.map(String).reverse();
  return others.length === 0 ? `${last}` : `${others.reverse().join(', ')} or ${last}`;
}

/** What is there, so that who wrote it knows it again. */
function shown(value: unknown): string {
  if (value === null || value === undefined) return 'empty';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (typeof value === 'object') return 'a mapping';
  if (value === '') return 'empty';
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return text.length > SHOWN_LENGTH ? `${text.slice(0, SHOWN_LENGTH)}…` : text;
}

function valueAt(document: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (value, key) =>
      typeof value === 'object' && value !== null
        ? (value as Readonly<Record<PropertyKey, unknown>>)[key]
        : undefined,
    document,
  );
}

/** A key there that is much like it, one of that name elsewhere, or all that belong there. */
function intended(schema: z.ZodType, document: unknown, path: Path, name: string): string {
  const here = Object.keys(shapeAt(schema, document, path));
  const near = nearest(name, here);
  if (near !== undefined) return `; did you mean ${near}?`;
  const own = keyOf([...path.filter((key) => typeof key !== 'number'), name]);
  const elsewhere = pathsOf(schema).find((key) => key.endsWith(`.${name}`) && key !== own);
  if (elsewhere !== undefined) return ` there; did you mean ${elsewhere}?`;
  return `; there ${here.length === 1 ? 'is' : 'are'} ${here.join(', ')}`;
}

type Shape = Readonly<Record<string, z.core.$ZodType>>;

/** Keys of the mapping that is meant at that place. */
function shapeAt(schema: z.core.$ZodType, document: unknown, path: Path): Shape {
  const bare = unwrapped(schema, document);
  const [key, ...rest] = path;
  if (bare instanceof z.ZodArray) {
    return key === undefined ? {} : shapeAt(bare.element, valueAt(document, [key]), rest);
  }
  if (!(bare instanceof z.ZodObject)) return {};
  const { shape } = bare;
  if (key === undefined) return shape;
  const below = shape[String(key)];
  return below === undefined ? {} : shapeAt(below, valueAt(document, [key]), rest);
}

/** Without what may be left out; of mappings that differ by their mode, the one that is there. */
function unwrapped(schema: z.core.$ZodType, document: unknown): z.core.$ZodType {
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault
  ) {
    return unwrapped(schema.unwrap(), document);
  }
  if (!(schema instanceof z.ZodDiscriminatedUnion)) return schema;
  const { discriminator } = schema.def;
  const isMeant = (option: z.core.$ZodType) => {
    const mode = option instanceof z.ZodObject ? option.shape[discriminator] : undefined;
    return mode instanceof z.ZodType && mode.safeParse(valueAt(document, [discriminator])).success;
  };
  return schema.options.find(isMeant) ?? schema;
}

/** All keys that stand below another one. */
function pathsOf(schema: z.core.$ZodType, prefix = ''): string[] {
  const bare = unwrapped(schema, undefined);
  if (bare instanceof z.ZodArray) return pathsOf(bare.element, prefix);
  if (bare instanceof z.ZodDiscriminatedUnion) {
    return bare.options.flatMap((option) => pathsOf(option, prefix));
  }
  if (!(bare instanceof z.ZodObject)) return [];
  return Object.entries<z.core.$ZodType>(bare.shape).flatMap(([name, below]) => {
    const key = prefix === '' ? name : `${prefix}.${name}`;
    return [key, ...pathsOf(below, key)];
  });
}
