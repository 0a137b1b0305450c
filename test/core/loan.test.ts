import fc from 'fast-check';
import { borrowBlock } from '../../src/core/eventBlocks.js';
import { Loan } from '../../src/core/loan.js';

describe('a loan', () => {
  it('is given back once, when as many have released as hold it', () => {
    fc.assert(
      fc.property(fc.nat(20), (others) => {
        let returned = 0;
        const loan = new Loan(() => {
          returned += 1;
        });
        for (let i = 0; i < others; i += 1) loan.hold();
        for (let i = 0; i < others; i += 1) {
          loan.release();
          expect(returned).toBe(0);
        }
        loan.release();
        expect(returned).toBe(1);
      }),
    );
  });

  it('says so when somebody releases or holds what was given back', () => {
    const loan = new Loan(() => {});
    loan.release();
    expect(() => loan.release()).toThrow(/given back/);
    expect(() => loan.hold()).toThrow(/given back/);
  });
});

describe('blocks for events', () => {
  it('belong to one borrower at a time', () => {
    const steps = fc.array(fc.boolean(), { maxLength: 300 });
    fc.assert(
      fc.property(steps, (borrows) => {
        const held = new Map<Buffer, () => void>();
        for (const borrow of borrows) {
          const [oldest] = held;
          if (borrow || oldest === undefined) {
            const { bytes, loan } = borrowBlock();
            expect(held.has(bytes)).toBe(false);
            held.set(bytes, loan.release);
          } else {
            const [bytes, release] = oldest;
            held.delete(bytes);
            release();
          }
        }
        for (const release of held.values()) release();
      }),
    );
  });

  it('are used again once they were given back', () => {
    const first = borrowBlock();
    first.loan.release();
    const second = borrowBlock();
    expect(second.bytes).toBe(first.bytes);
    second.loan.release();
  });
});
